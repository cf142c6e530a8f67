-- What became of each reservation: a projection of the ledgers' events, written in the transaction
-- that records them.  Amounts are quanta.  There is no text, no question and no vector in it, and
-- the keyed digest tells nobody what was asked.
--
-- This is its shape from before queries were paid for; receipts of index requests keep it for good.
CREATE TABLE spend_receipts (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    reservation_id uuid NOT NULL,
    request_digest text COLLATE "C" NOT NULL CHECK (length(request_digest) = 64),
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('pending', 'settled', 'unknown', 'reconciled')),
    day text COLLATE "C" NOT NULL CHECK (length(day) = 10), -- UTC, of admission
    admitted_at timestamptz NOT NULL,
    lease_s integer NOT NULL CHECK (lease_s > 0),
    reserved_quanta bigint NOT NULL CHECK (reserved_quanta > 0),
    charged_quanta bigint NOT NULL CHECK (charged_quanta BETWEEN 0 AND reserved_quanta),
    usage_tokens bigint,
    unknown_reason text COLLATE "C",
    ceiling_quanta bigint NOT NULL,
    ceiling_requests bigint NOT NULL,
    ledger_id uuid NOT NULL, -- The stream of its events, and which of them admitted it.
    admitted_version bigint NOT NULL,
    -- No other index: before the table was analysed for the first time, one that begins with tenant
    -- and owner was taken instead, and all receipts of the owner read for one (adr/0026).
    PRIMARY KEY (tenant, owner, reservation_id)
);

-- Copies of ledgers as of a version: dropped and made again at any time.
CREATE TABLE ledger_snapshots (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    state bytea NOT NULL, -- ledger_snapshot.py in the domain
    PRIMARY KEY (tenant, owner)
);
