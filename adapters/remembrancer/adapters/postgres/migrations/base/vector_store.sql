-- Vectors, in pgvector (adr/0028).
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        CREATE EXTENSION vector SCHEMA public;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'extension vector is missing; let an administrator run CREATE EXTENSION vector in this database, then migrate again';
    WHEN undefined_file OR feature_not_supported OR object_not_in_prerequisite_state THEN
        RAISE EXCEPTION 'extension vector is missing; install pgvector 0.8 or later on the server, let an administrator run CREATE EXTENSION vector in this database, then migrate again';
END $$;

-- An administrator may have put it into any schema.
SELECT set_config('search_path', format('remembrancer, %s, pg_temp', extnamespace::regnamespace), true)
FROM pg_extension WHERE extname = 'vector';

CREATE TABLE vectors (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    -- With its index every vector goes, whoever's it is: this is how row security lets one drop them.
    index_number bigint NOT NULL REFERENCES vector_indexes (number) ON DELETE CASCADE,
    id uuid NOT NULL,
    embedding vector NOT NULL,
    extreme boolean NOT NULL, -- so long or so short that float32 can't square it
    scope text COLLATE "C",
    kind text COLLATE "C",
    sensitivity text COLLATE "C",
    state text COLLATE "C",
    marks uuid[] NOT NULL, -- as in sparse_documents
    PRIMARY KEY (tenant, index_number, id)
);

SELECT set_config('search_path', 'remembrancer, pg_temp', true);

ALTER TABLE vectors ALTER COLUMN embedding SET STATISTICS 0;
ALTER TABLE vectors ALTER COLUMN marks SET STATISTICS 0;
-- In the row as long as it fits into a page: every scan needs it.
ALTER TABLE vectors ALTER COLUMN embedding SET STORAGE MAIN;

CREATE INDEX vectors_of_owner ON vectors (tenant, owner, index_number);
CREATE INDEX vectors_extreme ON vectors (tenant, index_number) WHERE extreme;
-- For upkeep, which asks by id over all tenants, and for dropping an index.
CREATE INDEX vectors_by_id ON vectors (index_number, id);
