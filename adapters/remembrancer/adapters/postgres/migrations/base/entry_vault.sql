-- Originals by version, and which scopes there are (adr/0027).  What erasure has to remove is kept out
-- of the planner's statistics, where it would outlive its row.
CREATE TABLE originals (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    -- As it stands in an index: the entry's id while current, the version's once superseded.
    index_id uuid NOT NULL,
    entry_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    scope text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    sensitivity text COLLATE "C" NOT NULL,
    recorded_at bigint NOT NULL, -- microseconds since 1970, UTC
    superseded_at bigint, -- the same; NULL while current
    tokens bigint NOT NULL,
    token_counter text COLLATE "C" NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    salt bytea NOT NULL CHECK (octet_length(salt) = 32),
    subjects text COLLATE "C" NOT NULL, -- canonical JSON
    metadata text COLLATE "C" NOT NULL, -- canonical JSON
    reason bytea NOT NULL, -- UTF-8: a text of PostgreSQL has no place for NUL
    text bytea NOT NULL, -- UTF-8
    PRIMARY KEY (tenant, index_id)
);

ALTER TABLE originals ALTER COLUMN digest SET STATISTICS 0;
ALTER TABLE originals ALTER COLUMN salt SET STATISTICS 0;
ALTER TABLE originals ALTER COLUMN subjects SET STATISTICS 0;
ALTER TABLE originals ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE originals ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE originals ALTER COLUMN text SET STATISTICS 0;

CREATE INDEX originals_of_owner ON originals (tenant, owner) WHERE superseded_at IS NULL;
CREATE INDEX originals_core ON originals (tenant, owner)
WHERE superseded_at IS NULL AND kind = 'core';
-- For upkeep, which asks by id over all tenants.
CREATE INDEX originals_by_index_id ON originals (index_id);

CREATE TABLE owned_scopes (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    scope_key uuid NOT NULL, -- a digest of the scope: three long names don't fit into a key
    scope text COLLATE "C" NOT NULL,
    kept bigint NOT NULL CHECK (kept >= 0), -- versions; the row goes with the last one
    PRIMARY KEY (tenant, owner, scope_key)
);

-- That an entry was erased, and whose it was: nothing else of it stays here.
CREATE TABLE erased_entries (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    entry_id uuid NOT NULL,
    PRIMARY KEY (tenant, entry_id)
);

CREATE INDEX erased_entries_by_id ON erased_entries (entry_id);
