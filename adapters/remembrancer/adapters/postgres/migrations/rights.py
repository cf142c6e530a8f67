"""Which tables there are, and what the application may do to each.

Every table of :data:`OWNED` has columns ``tenant`` and ``owner`` and is put under row security by
:mod:`.row_security`; :data:`COMMON` says why a table isn't.  A test finds one in neither.
"""

OWNED: dict[str, str] = {
    "owners": "SELECT, INSERT, UPDATE",  # UPDATE to lock a row.
    # A position that the writer chose could be one that followers have gone past.
    "stored_events": "SELECT, INSERT (tenant, owner, originator_id, originator_version, topic,"
    " state, predecessor_hash, event_hash)",
    "stored_snapshots": "SELECT, INSERT, DELETE",
    # What was reserved, for which request and day, stays.
    "spend_receipts": "SELECT, INSERT, UPDATE (state, charged_quanta, usage_tokens,"
    " unknown_reason)",
    "ledger_snapshots": "SELECT, INSERT, UPDATE",
}
"""Tables with rows of owners, and the application's rights to its own owner's."""

COMMON: dict[str, str] = {
    "tracking": "SELECT, INSERT, UPDATE",  # How far projections are: names and numbers.
    "alembic_version": "SELECT",  # Which revision the schema is at.
}
"""Tables that belong to nobody, and the application's rights to them."""

SECRET: frozenset[str] = frozenset()
"""Tables that an auditor may not read."""

SEQUENCES: dict[str, str] = {
    "event_positions": "SELECT, USAGE",  # SELECT for followers; never UPDATE, which sets it back.
}
