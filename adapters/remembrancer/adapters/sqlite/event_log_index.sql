-- Who the events are about, found without reading the log.  Only a stream's first event says whose
-- it is.  What isn't JSON is indexed as NULL, and so found by nobody: the log keeps it nevertheless.
-- The same expressions stand in archive.py: SQLite uses an index only for what is spelt alike.

CREATE INDEX IF NOT EXISTS stored_events_of_owner ON stored_events (
    (CASE WHEN json_valid(CAST(state AS TEXT)) THEN CAST(state AS TEXT) ->> '$.tenant' END),
    (CASE WHEN json_valid(CAST(state AS TEXT)) THEN CAST(state AS TEXT) ->> '$.owner' END)
) WHERE originator_version = 1;

CREATE INDEX IF NOT EXISTS stored_events_of_session ON stored_events (
    (CASE WHEN json_valid(CAST(state AS TEXT)) THEN CAST(state AS TEXT) ->> '$.session' END)
) WHERE originator_version = 1 AND topic = 'remembrancer.l3_selection.l3_entries_selected';

CREATE INDEX IF NOT EXISTS stored_events_of_reservation ON stored_events (
    (
        CASE WHEN json_valid(CAST(state AS TEXT))
            THEN CAST(state AS TEXT) ->> '$.reservation_id._data_' END
    )
) WHERE topic IN (
    'remembrancer.reservation_ledger.reservation_admitted',
    'remembrancer.reservation_ledger.reservation_settled',
    'remembrancer.reservation_ledger.reservation_became_unknown',
    'remembrancer.reservation_ledger.reservation_reconciled',
    'remembrancer.cache_context.query_vectors_prepared'
);
