"""Roles, rights and row security of all tables, made by one function for all (adr/0018).

The owner of the tables is bound as well (FORCE), and has no policy: it sees no row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg import sql

from remembrancer.adapters.postgres.statements import SCHEMA

_TENANT = "tenant = nullif(current_setting('remembrancer.tenant', true), '')"
_OWNER = "owner = nullif(current_setting('remembrancer.owner', true), '')"
_REACH = "current_setting('remembrancer.reach', true) = 'tenant'"
# A setting that was made in an earlier transaction of the session reads as an empty text, not as
# NULL: it must be nobody's name.

_TABLE = (
    """
ALTER TABLE {schema}.{table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.{table} FORCE ROW LEVEL SECURITY;
CREATE POLICY application ON {schema}.{table} FOR ALL TO {application}
    USING ("""
    f"{_TENANT} AND ({_OWNER} OR {_REACH})"
    """)
    WITH CHECK ("""
    f"{_TENANT} AND {_OWNER}"
    """);
CREATE POLICY auditor ON {schema}.{table} FOR SELECT TO {auditor} USING (true);
"""
)
_ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {name}) THEN
        CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'role % is missing; let an administrator CREATE ROLE it, with LOGIN',
            {name};
END $$;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Names of the two roles that a memory connects as."""

    application: str = "remembrancer_app"
    """Bound by row security, owns nothing."""
    auditor: str = "remembrancer_auditor"
    """Reads all rows, writes none."""


def make_roles(roles: Roles) -> str:
    """Return what makes the roles that are missing, and lets them look into the schema."""
    making = [
        _filled(_ROLE, role=sql.Identifier(name), name=sql.Literal(name))
        for name in (roles.application, roles.auditor)
    ]
    using = _filled("GRANT USAGE ON SCHEMA {schema} TO {application}, {auditor};", **_names(roles))
    return "".join([*making, using])


def secure(
    roles: Roles,
    *,
    owned: Mapping[str, str],
    common: Mapping[str, str],
    secret: frozenset[str],
    sequences: Mapping[str, str],
) -> str:
    """Return what puts tables under row security and grants what may be done to them."""
    names = _names(roles)
    parts = [_filled(_TABLE, table=sql.Identifier(table), **names) for table in owned]
    for table, rights in {**owned, **common}.items():
        named = {"table": sql.Identifier(table), **names}
        parts.append(
            _filled(f"GRANT {rights} ON {{schema}}.{{table}} TO {{application}};", **named)
        )
        if table not in secret:
            parts.append(_filled("GRANT SELECT ON {schema}.{table} TO {auditor};", **named))
    for sequence, rights in sequences.items():
        named = {"sequence": sql.Identifier(sequence), **names}
        parts.append(
            _filled(
                f"GRANT {rights} ON SEQUENCE {{schema}}.{{sequence}} TO {{application}};"
                "GRANT SELECT ON SEQUENCE {schema}.{sequence} TO {auditor};",
                **named,
            )
        )
    return "\n".join(parts)


def let_call(roles: Roles, functions: Iterable[str]) -> str:
    """Return what lets the application, and nobody else, call functions."""
    return "".join(
        _filled(
            "REVOKE ALL ON FUNCTION {schema}.{function} FROM PUBLIC;"
            "GRANT EXECUTE ON FUNCTION {schema}.{function} TO {application};",
            function=sql.Identifier(function),
            **_names(roles),
        )
        for function in functions
    )


def _names(roles: Roles) -> dict[str, sql.Composable]:
    return {
        "schema": sql.Identifier(SCHEMA),
        "application": sql.Identifier(roles.application),
        "auditor": sql.Identifier(roles.auditor),
    }


def _filled(template: str, **names: sql.Composable) -> str:
    return sql.SQL(template).format(**names).as_string(None)
