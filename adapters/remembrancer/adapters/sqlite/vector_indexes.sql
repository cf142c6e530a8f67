-- Which vector indexes there are.  The tables of an index that is kept here come and go with its row;
-- vector_tables.py makes them.

CREATE TABLE IF NOT EXISTS vector_index (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    embedding_tuple TEXT NOT NULL, -- canonical JSON
    state TEXT NOT NULL CHECK (state IN ('building', 'active', 'retired')),
    position INTEGER NOT NULL,
    place TEXT NOT NULL -- 'local', or the service that keeps its vectors
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS vector_index_active
ON vector_index (state) WHERE state = 'active';

CREATE UNIQUE INDEX IF NOT EXISTS vector_index_building
ON vector_index (state) WHERE state = 'building';
