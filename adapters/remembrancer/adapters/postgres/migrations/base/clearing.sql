-- Transactions that have erased something whose dead rows may still lie in the files: names and
-- content of nothing.  Emptied by `remembrancer maintain clear` (adr/0027).
CREATE TABLE pending_clearing (
    xid xid8 PRIMARY KEY DEFAULT pg_current_xact_id(),
    erased_at timestamptz NOT NULL DEFAULT now()
);
