-- Receipts of queries say so, and until when they hold their owner up.  Those of index requests
-- stay as they are: what only queries have is absent (NULL) in them.
--
-- Locks in the order in which a ledger takes them: owners, then receipts.  The first keeps all
-- writers out; who waits for it longer than this holds others up and should try again.
SET LOCAL lock_timeout = '4s';
LOCK TABLE owners IN EXCLUSIVE MODE;
LOCK TABLE spend_receipts IN ACCESS EXCLUSIVE MODE;

ALTER TABLE spend_receipts
    ADD COLUMN kind text COLLATE "C" CHECK (kind = 'query'),
    ADD COLUMN deadline timestamptz,
    ADD CONSTRAINT spend_receipts_of_queries_have_a_deadline
        CHECK ((kind IS NULL) = (deadline IS NULL));

-- Receipts of queries that were there before a downgrade are known by the log.  The owner of the
-- tables is bound by row security (FORCE) and would find none: it is let off inside this
-- transaction, where nobody else can look at these tables.
DO $$
BEGIN
    ALTER TABLE spend_receipts NO FORCE ROW LEVEL SECURITY;
    SET LOCAL row_security = off; -- If rows are hidden even now, fail.
    IF EXISTS (SELECT FROM spend_receipts) THEN
        ALTER TABLE stored_events NO FORCE ROW LEVEL SECURITY;
        UPDATE spend_receipts AS receipt
        SET kind = admitted.state ->> 'kind',
            deadline = (admitted.state -> 'deadline' ->> '_data_')::timestamptz
        FROM (
            SELECT tenant, originator_id, originator_version,
                convert_from(state, 'UTF8')::jsonb AS state
            FROM stored_events
            WHERE topic = 'remembrancer.reservation_ledger.reservation_admitted'
        ) AS admitted
        WHERE admitted.tenant = receipt.tenant
        AND admitted.originator_id = receipt.ledger_id
        AND admitted.originator_version = receipt.admitted_version
        AND admitted.state ? 'kind';
        ALTER TABLE stored_events FORCE ROW LEVEL SECURITY;
    END IF;
    SET LOCAL row_security = on;
    ALTER TABLE spend_receipts FORCE ROW LEVEL SECURITY;
END $$;

-- Behind the domain's rule.
CREATE UNIQUE INDEX spend_receipts_one_pending_query ON spend_receipts (tenant, owner)
WHERE state = 'pending' AND kind = 'query';
