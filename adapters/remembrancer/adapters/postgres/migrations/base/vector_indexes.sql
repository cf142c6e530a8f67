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
