"""Reading settings: ``remembrancer.toml``, then ``REMEMBRANCER_*`` over it.

A section's key ``store.path`` is ``REMEMBRANCER_STORE__PATH`` in the environment, where a list is
written with commas.  Unknown keys are errors in both: a misspelt limit must not go unnoticed.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from remembrancer.composition.settings import Settings
from remembrancer.domain.errors import InvalidInputError, SettingsError
from remembrancer.domain.parsed import Parsed

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
    given = _read(_file(file, environment), environment)
    _refuse_unknown(given)
    try:
        return Settings.parse(given)
    except InvalidInputError as error:
        raise SettingsError(setting=_spelt(error.field), problem=error.problem) from None


def _file(file: Path | None, environment: Mapping[str, str]) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    wanted = file if file is not None else Path(named) if named else None
    if wanted is not None:
        if wanted.is_dir():
            raise SettingsError(
                setting=str(wanted), problem=f"is a folder; name a file in it, such as {FILE_NAME}"
            )
        if not wanted.is_file():
            raise SettingsError(setting=str(wanted), problem="there is no such settings file")
        return wanted
    here = Path(FILE_NAME)
    if here.is_dir():
        raise SettingsError(setting=FILE_NAME, problem="is a folder; the settings' file goes here")
    return here if here.is_file() else None


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    for section, values in given.items():
        if section not in _SECTIONS:
            raise _unknown(section, _SECTIONS)
        known = _known(_SECTIONS[section])
        for key in values if isinstance(values, dict) else ():
            if key not in known:
                raise _unknown(f"{section}.{key}", known)


def _known(kind: type[Parsed]) -> list[str]:
    """Return the keys of a section, its own before those that it shares."""
    own = [name for name in kind.__annotations__ if name in kind.model_fields]
    return [*own, *(name for name in kind.model_fields if name not in own)]


def _unknown(setting: str, known: Iterable[str]) -> SettingsError:
    return SettingsError(setting=setting, problem=f"is unknown; known are {', '.join(known)}")


def _spelt(field: str) -> str:
    """Return a field such as ``StoreSettings.path`` as it stands in a file: ``store.path``."""
    model, _, key = field.partition(".")
    sections = [name for name, kind in _SECTIONS.items() if kind.__name__ == model]
    return ".".join(filter(None, (*sections, key)))


def _section_kind(annotation: Any) -> type[Parsed]:
    kinds = [annotation, *get_args(annotation)]
    [kind] = [one for one in kinds if isinstance(one, type) and issubclass(one, Parsed)]
    return kind


_SECTIONS = {name: _section_kind(one.annotation) for name, one in Settings.model_fields.items()}


class _Sections(BaseSettings):
    """Tells pydantic-settings where to look; :class:`Settings` judges what is found."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="allow")
    store: dict[str, Any] = {}
    vector_store: dict[str, Any] = {}
    embedder: dict[str, Any] = {}
    identity: dict[str, Any] = {}
    provider: dict[str, Any] = {}
    pricing: dict[str, Any] = {}
    ceilings: dict[str, Any] = {}
    egress: dict[str, Any] = {}
    admission: dict[str, Any] = {}


def _read(file: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    given = {} if file is None else _from_file(file)
    for section, values in _from_environment(environment).items():
        standing = given.get(section)
        given[section] = {**standing, **values} if isinstance(standing, dict) else values
    return given


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    ours = {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIX) and not name.startswith(_NOT_SETTINGS)
    }
    for name in ours:
        section, _, key = name.removeprefix(PREFIX).lower().partition("__")
        if section not in _SECTIONS or not key:
            raise _unknown(name, (f"{PREFIX}{one.upper()}__..." for one in _SECTIONS))
    source = EnvSettingsSource(_Sections)
    # What was given, not what the process has: so that a test or a host may say it.
    source.env_vars = {name.lower(): value for name, value in ours.items()}
    given = dict(source())
    for section, values in given.items():
        for key, value in values.items():
            field = _SECTIONS[section].model_fields.get(key)
            if field is not None and get_origin(field.annotation) is tuple:
                values[key] = [part.strip() for part in value.split(",")]
    return given


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return dict(TomlConfigSettingsSource(_Sections, toml_file=file)())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(setting=str(file), problem=f"isn't TOML: {error}") from None
    except UnicodeDecodeError:
        raise SettingsError(setting=str(file), problem="isn't UTF-8 text") from None
    except OSError as error:
        raise SettingsError(
            setting=str(file), problem=f"can't be read: {error.strerror}"
        ) from None
