-- What became of each reservation: a projection of the ledgers' events, written in the transaction
-- that records them.  Amounts are quanta, times microseconds since 1970 (UTC); there is no text, no
-- question and no vector in it, and the keyed digest tells nobody what was asked.
CREATE TABLE IF NOT EXISTS spend_receipts (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    reservation_id BLOB NOT NULL CHECK (length(reservation_id) = 16),
    kind TEXT NOT NULL CHECK (kind IN ('indexing', 'query')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'settled', 'unknown', 'reconciled')),
    day TEXT NOT NULL, -- of admission
    reserved_quanta INTEGER NOT NULL CHECK (reserved_quanta > 0),
    charged_quanta INTEGER NOT NULL CHECK (charged_quanta BETWEEN 0 AND reserved_quanta),
    usage_tokens INTEGER,
    unknown_reason TEXT,
    admitted_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    admitted_version INTEGER NOT NULL, -- of the ledger's stream
    ceiling_quanta INTEGER NOT NULL,
    ceiling_requests INTEGER NOT NULL,
    request_digest TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, reservation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS spend_receipts_of_day ON spend_receipts (tenant, owner, day);

-- Copies of ledgers as of a version: dropped and made again at any time.
CREATE TABLE IF NOT EXISTS ledger_snapshots (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    state BLOB NOT NULL, -- ledger_snapshot.py in the domain
    PRIMARY KEY (tenant, owner)
) STRICT, WITHOUT ROWID;
