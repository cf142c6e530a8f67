"""Options that several commands share, and the session they open."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from remembrancer.composition.assembly import assembled
from remembrancer.composition.cli.output import Output
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import IdentitySettings, Settings
from remembrancer.composition.settings_sources import load_settings
from remembrancer.domain.errors import InvalidInputError, SettingsError, StoreReadOnlyError
from remembrancer.domain.sensitivity import Sensitivity

Db = Annotated[
    Path | None, typer.Option("--db", help="The memory's file; settings say another by default.")
]
Config = Annotated[
    Path | None, typer.Option("--config", help="Settings file (default: remembrancer.toml).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Whose installation.")]
Owner = Annotated[str | None, typer.Option("--owner", help="Whose memory.")]
Principal = Annotated[str | None, typer.Option("--principal", help="Who asks.")]
Scope = Annotated[str | None, typer.Option("--scope", help="A path such as project/alpha.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="A path that may be read; give several times for more."),
]
SensitivityName = Annotated[
    str | None,
    typer.Option("--sensitivity", help="public, internal, confidential or restricted."),
]
Ceiling = Annotated[
    str | None, typer.Option("--ceiling", help="Highest sensitivity that may be read.")
]
Reason = Annotated[
    str, typer.Option("--reason", help="A code such as outdated (kept in the log), or words.")
]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a command works with."""

    memory: Remembrancer
    settings: Settings
    out: Output

    @property
    def identity(self) -> IdentitySettings:
        """Who the command speaks as by default."""
        return self.settings.identity

    def whose(self, tenant: str | None) -> str | None:
        """Return whose an id is that is given alone; a server shows no row to who names nobody."""
        if tenant is None and self.settings.store.backend == "postgres":
            return self.identity.tenant
        return tenant


def read_settings(db: Path | None, config: Path | None, *, read_only: bool = False) -> Settings:
    """Return the settings with what the command line says over them."""
    settings = load_settings(config, os.environ)
    store = settings.store
    if db is not None and store.backend == "postgres":
        raise SettingsError(
            setting="store.backend", problem="is postgres, so that --db has no file to name"
        )
    changed = store.model_copy(
        update={
            "path": store.path if db is None else db,
            "read_only": store.read_only or read_only,
        }
    )
    return settings.model_copy(update={"store": changed})


@contextmanager
def opened(
    db: Path | None,
    config: Path | None,
    *,
    as_json: bool,
    read_only: bool = False,
    new: bool = False,
) -> Generator[Opened]:
    """Open the memory for one command; unless ``new``, the file must be there already."""
    settings = read_settings(db, config, read_only=read_only)
    if settings.store.backend == "memory":
        raise SettingsError(
            setting="store.backend",
            problem="memory is for a process that stays: a command would forget all as it ends; "
            "use sqlite here",
        )
    path = settings.store.path
    if settings.store.backend == "sqlite" and not new and _is_missing(path):
        raise SettingsError(
            setting="store.path",
            problem=f"there is no memory at {path}; make one with `remembrancer init`, or name "
            "another file with --db",
        )

    def reread() -> Settings:
        return read_settings(db, config, read_only=read_only)

    with _assembled(settings, read_settings(db, config), reread) as memory:
        yield Opened(memory, settings, Output(as_json=as_json))


def _is_missing(path: Path) -> bool:
    """Say whether no memory is there: no file, or one that nobody has written to."""
    try:
        return path.stat().st_size == 0 and not path.with_name(f"{path.name}-wal").exists()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # Opening it says what is wrong.


def _assembled(
    settings: Settings, as_configured: Settings, reread: Callable[[], Settings]
) -> Remembrancer:
    try:
        return assembled(settings, reread=reread)
    except StoreReadOnlyError:
        # A command that only reads met a file that has first to be brought to this release's
        # schema: open it for writing where that is allowed.
        if as_configured.store.read_only:
            raise
        return assembled(as_configured, reread=reread)


def given(value: str | None, default: str) -> str:
    """Return what an option says, also where it says nothing: that is refused, not replaced."""
    return default if value is None else value


def sensitivity_of(
    name: str | None, default: Sensitivity, *, option: str = "--sensitivity"
) -> Sensitivity:
    """Read a sensitivity from the command line."""
    if name is None:
        return default
    try:
        return Sensitivity(name.lower())
    except ValueError:
        known = ", ".join(level.value for level in Sensitivity)
        raise InvalidInputError(field=option, problem=f"must be one of {known}") from None


def text_of(text: str) -> str:
    """Return ``text``, or standard input where it is ``-``.

    Raises:
        InvalidInputError: standard input isn't UTF-8.
    """
    if text != "-":
        return text
    try:
        return typer.get_binary_stream("stdin").read().decode()
    except UnicodeDecodeError:
        raise InvalidInputError(field="standard input", problem="isn't UTF-8") from None


def pairs_of(values: list[str] | None) -> dict[str, str]:
    """Read ``key=value`` pairs."""
    found = {}
    for value in values or []:
        key, equals, rest = value.partition("=")
        if not equals or not key:
            raise InvalidInputError(field="--meta", problem="must be key=value")
        found[key] = rest
    return found
