"""Settings of a memory in PostgreSQL, and where its connection strings come from.

A connection string may hold a password, so it stands in the environment or in a file of its own,
never among the settings (design section 8).
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from remembrancer.domain.errors import SettingsError
from remembrancer.domain.parsed import Name, Parsed

if TYPE_CHECKING:
    from remembrancer.adapters.postgres.limits import Limits

DSN_CHARACTERS_MAX = 8_192

_Lenient = Field(strict=False)  # The environment and the command line give text.
_Seconds = Annotated[float, Field(strict=False, gt=0, le=86_400)]

Login = Literal["dsn", "reader_dsn", "owner_dsn"]
"""As the application; as the auditor; as the owner of the tables, who migrates and maintains."""
LOGINS: Mapping[Login, str] = MappingProxyType(
    {"dsn": "the application", "reader_dsn": "the auditor", "owner_dsn": "the owner"}
)
"""Whose connection strings there may be."""


class ServerSettings(Parsed):
    """What is said of a server, and how long and how much a memory may keep it busy."""

    dsn_variable: Name | None = None
    """Environment variable that holds the connection string of the application's role."""
    dsn_file: Annotated[Path | None, _Lenient] = None
    """File that holds it."""
    reader_dsn_variable: Name | None = None
    """The auditor's role: status, reindex and audit read over all tenants with it."""
    reader_dsn_file: Annotated[Path | None, _Lenient] = None
    owner_dsn_variable: Name | None = None
    """The role that owns the tables: for `migrate` and `maintain`, never for a memory at work."""
    owner_dsn_file: Annotated[Path | None, _Lenient] = None
    application_role: Name = "remembrancer_app"
    """What `migrate up` calls the two roles."""
    auditor_role: Name = "remembrancer_auditor"
    sslmode: (
        Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] | None
    ) = None
    """How TLS is asked for; left out, as the connection string says."""
    ssl_root_cert: Annotated[Path | None, _Lenient] = None
    """Certificates that the server's is checked with."""
    connections: Annotated[int, _Lenient, Field(ge=1, le=1_000)] = 10
    """At most, of one process and each role."""
    connection_wait_s: _Seconds = 5.0
    """How long a call waits for one of them."""
    connect_timeout_s: Annotated[int, _Lenient, Field(ge=1, le=600)] = 5
    statement_timeout_s: _Seconds = 30.0
    lock_timeout_s: _Seconds = 5.0
    """For each lock: who stands in line behind somebody who waits may wait for twice as long."""
    idle_in_transaction_timeout_s: _Seconds = 60.0
    pooler: Annotated[bool, _Lenient] = False
    """Whether something such as PgBouncer stands between that gives each transaction another
    session: then no statement is kept prepared."""
    vector_search: Literal["auto", "exact"] = "auto"
    """Whether an approximate index may answer for owners of very many entries, where one is."""


def connection_string(
    settings: ServerSettings, login: Login, environment: Mapping[str, str]
) -> str | None:
    """Return a connection string; None where the settings name no place for it.

    Raises:
        SettingsError: there is none in that place.  What is there isn't told.
    """
    file: Path | None = getattr(settings, f"{login}_file")
    variable: str | None = getattr(settings, f"{login}_variable")
    if file is not None:
        text, place = _read(file), f"file {file}"
    elif variable is not None:
        text, place = environment.get(variable, ""), f"variable {variable}"
    else:
        return None
    text = text.strip()
    if not text or len(text) > DSN_CHARACTERS_MAX:
        raise SettingsError(setting=place, problem="holds no connection string")
    return _with_tls(text, settings, login)


def required_connection_string(
    settings: ServerSettings, login: Login, environment: Mapping[str, str]
) -> str:
    """Return a connection string.

    Raises:
        SettingsError: the settings name no place for it, or there is none.
    """
    found = connection_string(settings, login, environment)
    if found is None:
        raise SettingsError(
            setting=f"store.{login}_variable",
            problem=f"is missing; name the environment variable, or in store.{login}_file the "
            "file, that holds the connection string",
        )
    return found


def optional_connection_string(
    settings: ServerSettings, login: Login, environment: Mapping[str, str]
) -> str | None:
    """Return a connection string; None where there is none, for what can do without it.

    A process that only remembers and recalls needn't be trusted with the auditor's role, although
    the settings that it shares with others name the place.

    Raises:
        SettingsError: what is there is no connection string.
    """
    file: Path | None = getattr(settings, f"{login}_file")
    variable: str | None = getattr(settings, f"{login}_variable")
    if file is not None and not file.exists():
        return None
    if file is None and variable is not None and not environment.get(variable, "").strip():
        return None
    return connection_string(settings, login, environment)


def limits_of(settings: ServerSettings) -> "Limits":
    """Return how long and how much a memory may keep the server busy."""
    from remembrancer.adapters.postgres.limits import Limits  # noqa: PLC0415  # its backend's

    plain = Limits()
    return Limits(
        connections=settings.connections,
        connection_wait_s=settings.connection_wait_s,
        connect_timeout_s=settings.connect_timeout_s,
        statement_timeout_s=settings.statement_timeout_s,
        lock_timeout_s=settings.lock_timeout_s,
        idle_in_transaction_timeout_s=settings.idle_in_transaction_timeout_s,
        prepare_after=None if settings.pooler else plain.prepare_after,
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        problem = "can't be read"
    raise SettingsError(setting=f"file {file}", problem=problem)


def _with_tls(text: str, settings: ServerSettings, login: Login) -> str:
    from remembrancer.adapters.postgres.connection import check_dsn  # noqa: PLC0415  # as above
    from remembrancer.adapters.postgres.tls import with_tls  # noqa: PLC0415  # as above

    check_dsn(text, setting=f"store.{login}")
    return with_tls(text, sslmode=settings.sslmode, root_cert=settings.ssl_root_cert)
