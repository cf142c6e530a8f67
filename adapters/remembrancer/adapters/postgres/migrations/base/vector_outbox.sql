-- Vectors and erasures that have to reach indexes kept elsewhere (adr/0020).
CREATE TABLE vector_outbox (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    index_number bigint NOT NULL,
    entry_id uuid NOT NULL,
    version bigint NOT NULL,
    vector bytea, -- little-endian float32; NULL where the text has none
    PRIMARY KEY (tenant, index_number, entry_id, version)
);

ALTER TABLE vector_outbox ALTER COLUMN vector SET STATISTICS 0;

CREATE INDEX vector_outbox_by_entry ON vector_outbox (entry_id);

CREATE TABLE vector_outbox_erasures (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    index_number bigint NOT NULL,
    entry_id uuid NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    versions bigint NOT NULL,
    PRIMARY KEY (tenant, index_number, entry_id)
);

CREATE INDEX vector_outbox_erasures_in_order ON vector_outbox_erasures (index_number, number);

-- Who carries over at present.
CREATE TABLE vector_outbox_leases (
    index_number bigint PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
);
