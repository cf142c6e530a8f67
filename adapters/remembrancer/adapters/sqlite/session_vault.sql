-- Keys of sealed vectors and the host's own items, until a session is erased.  Erased rows stay as
-- empty shells, as in entry_vault.sql.

CREATE TABLE IF NOT EXISTS session_key (
    number INTEGER PRIMARY KEY,
    selection_id BLOB UNIQUE, -- NULL, as all else, once erased
    tenant TEXT,
    owner TEXT,
    session TEXT,
    key BLOB
) STRICT;

CREATE INDEX IF NOT EXISTS session_key_of_session ON session_key (tenant, session);
CREATE INDEX IF NOT EXISTS session_key_of_owner ON session_key (tenant, owner);

CREATE TABLE IF NOT EXISTS session_items (
    id INTEGER PRIMARY KEY,
    selection_id BLOB, -- NULL, as all else, once erased
    number INTEGER, -- of the pack
    items BLOB, -- canonical JSON
    UNIQUE (selection_id, number)
) STRICT;
