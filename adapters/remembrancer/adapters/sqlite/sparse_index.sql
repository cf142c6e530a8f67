-- Documents by their words: see adr/0008.
--
-- A document's number is (its owner's number << 32) + a serial, so that the documents of one owner
-- lie together in every list of FTS5 and an owner's question reads no other's.

CREATE TABLE IF NOT EXISTS sparse_owner (
    number INTEGER PRIMARY KEY,
    tenant TEXT,
    owner TEXT,
    documents INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX IF NOT EXISTS sparse_owner_name ON sparse_owner (tenant, owner);

-- Each combination of the labels that recall filters by, once; NULL where a label is absent.
CREATE TABLE IF NOT EXISTS sparse_label (
    number INTEGER PRIMARY KEY,
    owner_number INTEGER NOT NULL REFERENCES sparse_owner (number),
    scope TEXT,
    kind TEXT,
    sensitivity TEXT,
    state TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS sparse_label_values
    ON sparse_label (owner_number, scope, kind, sensitivity, state);

CREATE TABLE IF NOT EXISTS sparse_document (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    label INTEGER NOT NULL REFERENCES sparse_label (number),
    text INTEGER NOT NULL -- its row in sparse_text
) STRICT;

-- What is private stands in rows that are only added at the end, never made longer and never
-- deleted, only emptied: so SQLite never moves one, and no stale copy of it is left behind in the
-- unused part of a page.

-- Prepared texts: FTS5 has to be told what it shall forget.
CREATE TABLE IF NOT EXISTS sparse_text (number INTEGER PRIMARY KEY, text TEXT) STRICT;

-- All metadata that isn't a label.
CREATE TABLE IF NOT EXISTS sparse_metadata (
    number INTEGER PRIMARY KEY,
    document INTEGER,
    key TEXT,
    value TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS sparse_metadata_document
    ON sparse_metadata (document) WHERE document IS NOT NULL;

-- Prepared texts hold nothing but ASCII and parts of words, which is what this tokenizer assumes.
CREATE VIRTUAL TABLE IF NOT EXISTS sparse_words
    USING fts5 (text, content = '', tokenize = 'porter ascii');

-- Which words there are: see sparse_separators.py.
CREATE VIRTUAL TABLE IF NOT EXISTS sparse_words_terms USING fts5vocab (sparse_words, 'row');

INSERT INTO sparse_words (sparse_words, rank) VALUES ('secure-delete', 1);
