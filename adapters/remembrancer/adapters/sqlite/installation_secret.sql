-- The one secret of this file: keys what must not be guessed back from its log.  It is content,
-- as keys of sessions are: whoever has the file has it.

CREATE TABLE IF NOT EXISTS installation_secret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;
