"""Receipts of queries beside those of index requests (adr/0026)."""

from remembrancer.adapters.postgres.migrations.row_security import let_call
from remembrancer.adapters.postgres.migrations.scripts import roles, run, run_file
from remembrancer.adapters.postgres.statements import SCHEMA

revision = "0002"
down_revision = "0001"

_IN_SCHEMA = f"SET LOCAL search_path = {SCHEMA}, pg_temp"
_FUNCTIONS = ("open_ledger", "record_admission", "record_change")


def upgrade() -> None:
    """Add what only receipts of queries have, also to those that were there before."""
    run(_IN_SCHEMA)
    run_file("query_receipts/up.sql")
    run_file("query_receipts/functions.sql")
    run(let_call(roles(), _FUNCTIONS))


def downgrade() -> None:
    """Take it away, if no query is pending; what was charged stays."""
    run(_IN_SCHEMA)
    run_file("query_receipts/down.sql")
