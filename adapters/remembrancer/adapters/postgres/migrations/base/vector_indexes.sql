-- Which vector indexes there are.
CREATE TABLE vector_indexes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never used twice
    embedding_tuple text COLLATE "C" NOT NULL, -- canonical JSON
    state text COLLATE "C" NOT NULL CHECK (state IN ('building', 'active', 'retired')),
    position bigint NOT NULL,
    place text COLLATE "C" NOT NULL -- 'local', or the service that keeps its vectors
);

CREATE UNIQUE INDEX vector_indexes_active ON vector_indexes (state) WHERE state = 'active';
CREATE UNIQUE INDEX vector_indexes_building ON vector_indexes (state) WHERE state = 'building';

-- The application drops indexes that were replaced or given up, and all tenants' vectors in them.
CREATE FUNCTION keep_the_active_index() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'the vector index that answers is not dropped; let another answer first'
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER the_active_index_stays
BEFORE DELETE ON vector_indexes FOR EACH ROW WHEN (OLD.state = 'active')
EXECUTE FUNCTION keep_the_active_index();
