-- Which scripts made this file; see schema.py.
CREATE TABLE IF NOT EXISTS schema_info (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    scripts_sha256 TEXT NOT NULL
) STRICT;
