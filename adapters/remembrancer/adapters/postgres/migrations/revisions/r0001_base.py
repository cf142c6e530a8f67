"""All tables, as they were before query spend."""

from remembrancer.adapters.postgres.migrations.rights import COMMON, OWNED, SECRET, SEQUENCES
from remembrancer.adapters.postgres.migrations.row_security import make_roles, secure
from remembrancer.adapters.postgres.migrations.scripts import BASE, roles, run, run_folder
from remembrancer.adapters.postgres.statements import SCHEMA

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables, the roles, and what each may do."""
    run(make_roles(roles()))
    run(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
    run_folder(BASE)
    run(secure(roles(), owned=OWNED, common=COMMON, secret=SECRET, sequences=SEQUENCES))


def downgrade() -> None:
    """Refuse: below the first revision there is nothing, and all memory would be lost."""
    raise RuntimeError("there is nothing below the first revision; drop the schema by hand")
