-- Vectors and erasures that have to reach indexes kept elsewhere (adr/0020).  Rows that held a vector
-- are emptied in place, as in entry_vault.sql; once nothing is left, all go at once.

CREATE TABLE IF NOT EXISTS vector_outbox (
    number INTEGER PRIMARY KEY,
    index_number INTEGER, -- NULL, as all else, once it has arrived or was erased
    entry_id BLOB,
    version INTEGER,
    tenant TEXT,
    owner TEXT,
    vector BLOB, -- little-endian float32; NULL where the text has none
    UNIQUE (index_number, entry_id, version)
) STRICT;

CREATE INDEX IF NOT EXISTS vector_outbox_entry ON vector_outbox (entry_id)
WHERE entry_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS vector_outbox_erasure (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    index_number INTEGER NOT NULL,
    entry_id BLOB NOT NULL,
    versions INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    UNIQUE (index_number, entry_id)
) STRICT;

-- Who carries to an index at present.
CREATE TABLE IF NOT EXISTS vector_outbox_lease (
    index_number INTEGER PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL -- microseconds since 1970, UTC
) STRICT;
