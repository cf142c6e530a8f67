-- Originals by version, and which scopes there are.  See adr/0003 for why erased rows stay as empty
-- shells: rows of `original` are only added at the end, never made longer and never deleted, so that
-- SQLite never moves one and no stale copy of a text is left behind in the unused part of a page.

CREATE TABLE IF NOT EXISTS owned_scope (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    scope TEXT NOT NULL,
    kept INTEGER NOT NULL, -- versions; the row goes with the last one
    UNIQUE (tenant, owner, scope)
) STRICT;

CREATE TABLE IF NOT EXISTS original (
    number INTEGER PRIMARY KEY,
    -- As it stands in an index: the entry's id while current, the version's once superseded.  So
    -- one look-up in one index serves every question by id.  NULL, as all else, once erased.
    index_id BLOB UNIQUE,
    entry_id BLOB,
    version INTEGER,
    owned_scope INTEGER REFERENCES owned_scope (number),
    kind TEXT,
    sensitivity TEXT,
    recorded_at INTEGER, -- microseconds since 1970, UTC
    superseded_at INTEGER, -- the same; the largest integer while current, which is as wide
    tokens INTEGER,
    token_counter TEXT,
    digest BLOB,
    salt BLOB,
    subjects TEXT, -- canonical JSON
    metadata TEXT, -- canonical JSON
    reason TEXT,
    text TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS original_current
ON original (owned_scope, kind) WHERE superseded_at = 9223372036854775807;

-- That an entry was erased, and whose it was: nothing else of it stays here.
CREATE TABLE IF NOT EXISTS erased_entry (
    entry_id BLOB PRIMARY KEY,
    tenant TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS kept_original AS
SELECT
    index_id, entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at,
    superseded_at, tokens, token_counter, digest, salt, subjects, metadata, reason, text
FROM original
INNER JOIN owned_scope ON owned_scope.number = original.owned_scope;
