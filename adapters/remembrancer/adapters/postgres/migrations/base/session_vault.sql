-- Keys of sealed vectors and the host's own items, until a session is erased.
CREATE TABLE session_keys (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    selection_id uuid NOT NULL,
    session text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    PRIMARY KEY (tenant, selection_id)
);

ALTER TABLE session_keys ALTER COLUMN key SET STATISTICS 0;

CREATE INDEX session_keys_of_session ON session_keys (tenant, session);
CREATE INDEX session_keys_of_owner ON session_keys (tenant, owner);
-- For audits, which ask by id over all tenants.
CREATE INDEX session_keys_by_selection ON session_keys (selection_id);

CREATE TABLE session_items (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.tenant'),
    owner text COLLATE "C" NOT NULL DEFAULT current_setting('remembrancer.owner'),
    selection_id uuid NOT NULL,
    number bigint NOT NULL, -- of the pack
    items bytea NOT NULL, -- canonical JSON
    PRIMARY KEY (tenant, selection_id, number)
);

ALTER TABLE session_items ALTER COLUMN items SET STATISTICS 0;
