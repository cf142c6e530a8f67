-- Documents by their words (adr/0027): postings of our own, so that BM25 is what the domain says it
-- is, and because row security keeps every operator of full-text search away from its index.
CREATE TABLE sparse_owners (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    documents bigint NOT NULL,
    length bigint NOT NULL, -- words of all of them
    PRIMARY KEY (tenant, owner)
);

CREATE TABLE sparse_documents (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    id uuid NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY, -- in the order in which they came
    scope text COLLATE "C",
    kind text COLLATE "C",
    sensitivity text COLLATE "C",
    state text COLLATE "C",
    marks uuid[] NOT NULL, -- digests of all other metadata, see labels.py
    length integer NOT NULL, -- words
    postings integer NOT NULL, -- distinct words
    text text COLLATE "C" NOT NULL, -- prepared
    PRIMARY KEY (tenant, id)
);

ALTER TABLE sparse_documents ALTER COLUMN marks SET STATISTICS 0;
ALTER TABLE sparse_documents ALTER COLUMN text SET STATISTICS 0;

CREATE INDEX sparse_documents_of_owner ON sparse_documents (tenant, owner, number);

-- The documents of one owner with one word lie together, and are scored from the key alone.
CREATE TABLE sparse_postings (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    term text COLLATE "C" NOT NULL, -- a stem
    id uuid NOT NULL,
    occurrences integer NOT NULL,
    length integer NOT NULL, -- words of the document
    positions bytea NOT NULL, -- of the stem in the document, 4 bytes each, little-endian
    PRIMARY KEY (tenant, term, owner, id) INCLUDE (occurrences, length)
);

ALTER TABLE sparse_postings ALTER COLUMN term SET STATISTICS 0;
ALTER TABLE sparse_postings ALTER COLUMN positions SET STATISTICS 0;
