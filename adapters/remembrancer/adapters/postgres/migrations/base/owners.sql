-- Who there is.  A write transaction locks the row of its owner, and so is the only one for it.
CREATE TABLE owners (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    owner text COLLATE "C" NOT NULL CHECK (owner <> ''),
    PRIMARY KEY (tenant, owner)
);
