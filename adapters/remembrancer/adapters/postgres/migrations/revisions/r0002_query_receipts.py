"""Receipts of queries beside those of index requests (adr/0026)."""

from remembrancer.adapters.postgres.migrations.scripts import run, run_file
from remembrancer.adapters.postgres.statements import SCHEMA

revision = "0002"
down_revision = "0001"

_IN_SCHEMA = f"SET LOCAL search_path = {SCHEMA}, pg_temp"


def upgrade() -> None:
    """Add what only receipts of queries have, also to those that were there before."""
    run(_IN_SCHEMA)
    run_file("query_receipts/up.sql")


def downgrade() -> None:
    """Take it away, if no query is pending; what was charged stays."""
    run(_IN_SCHEMA)
    run_file("query_receipts/down.sql")
