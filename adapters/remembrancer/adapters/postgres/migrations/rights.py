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
    # An original is never changed but for becoming superseded, and goes whole.
    "originals": "SELECT, INSERT, DELETE, UPDATE (index_id, superseded_at)",
    "owned_scopes": "SELECT, INSERT, UPDATE (kept), DELETE",
    "erased_entries": "SELECT, INSERT",
    "session_keys": "SELECT, INSERT, UPDATE (session, key), DELETE",
    "session_items": "SELECT, INSERT, UPDATE (items), DELETE",
    "sparse_owners": "SELECT, INSERT, UPDATE (documents, length)",
    "sparse_documents": "SELECT, INSERT, DELETE",
    "sparse_postings": "SELECT, INSERT, DELETE",
    "vectors": "SELECT, INSERT, UPDATE, DELETE",
    "vector_outbox": "SELECT, INSERT, UPDATE (vector), DELETE",
    "vector_outbox_erasures": "SELECT, INSERT, UPDATE (versions), DELETE",
}
"""Tables with rows of owners, and the application's rights to its own owner's."""

COMMON: dict[str, str] = {
    "tracking": "SELECT, INSERT, UPDATE",  # How far projections are: names and numbers.
    "alembic_version": "SELECT",  # Which revision the schema is at.
    "installation_secret": "SELECT, INSERT",  # The installation's, made by who comes first.
    "pending_clearing": "SELECT, INSERT",  # Numbers of transactions.
    # Models' names and numbers.  Dropping an index drops the vectors of all tenants in it: a
    # trigger keeps the one that answers, and all can be made again from what row security guards.
    "vector_indexes": "SELECT, INSERT, UPDATE (state, position), DELETE",
    "vector_outbox_leases": "SELECT, INSERT, UPDATE, DELETE",  # Which process carries over.
}
"""Tables that belong to nobody, and the application's rights to them."""

SECRET: frozenset[str] = frozenset({"installation_secret"})
"""Tables that an auditor may not read."""

SEQUENCES: dict[str, str] = {
    "event_positions": "SELECT, USAGE",  # SELECT for followers; never UPDATE, which sets it back.
}
