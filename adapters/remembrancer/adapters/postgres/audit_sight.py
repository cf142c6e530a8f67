"""What a role can see of our tables: which there are, which it may read, and whether all of it.

A table that row security shows a part of would be audited as if the rest weren't there.
"""

from dataclasses import dataclass, field
from typing import Final

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.statements import SCHEMA

_HAS_SCHEMA: Final = (
    "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s"
)
_TABLES: Final = """
    SELECT relname::text,
        has_any_column_privilege(oid, 'SELECT'),
        NOT relrowsecurity OR coalesce((
            SELECT bool_or(polpermissive AND pg_get_expr(polqual, polrelid) = 'true')
                AND bool_and(polpermissive)
            FROM pg_policy
            WHERE polrelid = pg_class.oid AND polcmd IN ('r', '*') AND EXISTS (
                SELECT FROM unnest(polroles) AS role WHERE role = 0 OR pg_has_role(role, 'USAGE')
            )
        ), false),
        relrowsecurity AND relforcerowsecurity
    FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')
"""


@dataclass(frozen=True, slots=True)
class SeenTable:
    """One table, as the role sees it."""

    is_readable: bool
    shows_all: bool
    """Whether row security lets the role see every row."""
    is_forced: bool
    """Whether row security binds everybody there, its owner too."""

    @property
    def is_whole(self) -> bool:
        """Whether what the role reads there is all there is."""
        return self.is_readable and self.shows_all


@dataclass(frozen=True, slots=True)
class Sight:
    """Our schema, as the role sees it."""

    has_schema: bool = False
    may_use: bool = False
    tables: dict[str, SeenTable] = field(default_factory=dict)


def look(connection: Connection) -> Sight:
    """Return what this connection's role can see."""
    schema = connection.execute(_HAS_SCHEMA, (SCHEMA,)).fetchone()
    if schema is None:
        return Sight()
    tables = {row[0]: SeenTable(*row[1:]) for row in connection.execute(_TABLES, (SCHEMA,))}
    return Sight(has_schema=True, may_use=bool(schema[0]), tables=tables)
