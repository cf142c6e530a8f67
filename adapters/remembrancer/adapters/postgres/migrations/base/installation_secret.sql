-- One row: keys what must not be guessed back from a log or a cache.
CREATE TABLE installation_secret (
    id integer PRIMARY KEY CHECK (id = 1),
    secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);

ALTER TABLE installation_secret ALTER COLUMN secret SET STATISTICS 0;
