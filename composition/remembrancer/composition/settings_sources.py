"""Reading settings: ``remembrancer.toml``, then ``REMEMBRANCER_*`` over it.

A section's key ``store.path`` is ``REMEMBRANCER_STORE__PATH`` in the environment.  Unknown keys
are errors in both: a misspelt limit must not go unnoticed.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from remembrancer.composition.settings import Settings
from remembrancer.domain.errors import InvalidInputError, SettingsError

PREFIX = "REMEMBRANCER_"
FILE_NAME = "remembrancer.toml"
FILE_VARIABLE = "REMEMBRANCER_CONFIG"
_NOT_SETTINGS = (FILE_VARIABLE, "REMEMBRANCER_TEST_")


def load_settings(file: Path | None, environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    ``file`` must exist if given; else the file that ``REMEMBRANCER_CONFIG`` names must; else
    ``remembrancer.toml`` in the working directory is read if it is there.

    Raises:
        SettingsError: a file is missing or isn't TOML, or a setting is unknown or wrong.
    """
    _refuse_unknown(environment)
    given = _read(_file(file, environment))
    try:
        return Settings.parse(given)
    except InvalidInputError as error:
        raise SettingsError(setting=error.field, problem=error.problem) from None


def _file(file: Path | None, environment: Mapping[str, str]) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    wanted = file if file is not None else Path(named) if named else None
    if wanted is not None:
        if not wanted.is_file():
            raise SettingsError(setting=str(wanted), problem="there is no such settings file")
        return wanted
    here = Path(FILE_NAME)
    return here if here.is_file() else None


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    sections = Settings.model_fields
    for name in environment:
        if not name.startswith(PREFIX) or name.startswith(_NOT_SETTINGS):
            continue
        section, _, key = name.removeprefix(PREFIX).lower().partition("__")
        if section not in sections or not key:
            known = ", ".join(f"{PREFIX}{one.upper()}__..." for one in sections)
            raise SettingsError(setting=name, problem=f"is unknown; known are {known}")


class _Sections(BaseSettings):
    """Tells pydantic-settings where to look; :class:`Settings` judges what is found."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="allow")
    store: dict[str, Any] = {}
    embedder: dict[str, Any] = {}
    identity: dict[str, Any] = {}
    provider: dict[str, Any] = {}
    pricing: dict[str, Any] = {}
    ceilings: dict[str, Any] = {}
    egress: dict[str, Any] = {}
    admission: dict[str, Any] = {}


def _read(file: Path | None) -> dict[str, Any]:
    chosen = EnvSettingsSource(_Sections)()
    given = {} if file is None else _from_file(file)
    for section, values in chosen.items():
        standing = given.get(section)
        given[section] = {**standing, **values} if isinstance(standing, dict) else values
    return given


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return dict(TomlConfigSettingsSource(_Sections, toml_file=file)())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(setting=str(file), problem=f"isn't TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            setting=str(file), problem=f"can't be read: {type(error).__name__}"
        ) from None
