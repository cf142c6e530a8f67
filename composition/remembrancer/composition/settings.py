"""Settings: what a host or an operator may choose, with bounds; unknown keys are errors.

Read from ``remembrancer.toml`` and ``REMEMBRANCER_*`` by :mod:`.settings_sources`.  Secrets come
from the environment or from files only (design section 8).
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

WIDTHS = (64, 128, 256)
"""Dimensions to which the static model can be cut."""

_Lenient = Field(strict=False)  # The environment and the command line give text.


def _offered(value: int) -> int:
    if value not in WIDTHS:
        raise ValueError(f"must be one of {', '.join(map(str, WIDTHS))}")
    return value


class StoreSettings(Parsed):
    """Where the memory is kept: log, vault, words and vectors in one place."""

    backend: Literal["sqlite", "memory"] = "sqlite"
    path: Annotated[Path, _Lenient] = Path("memory.db")
    busy_timeout_s: Annotated[float, Field(strict=False, gt=0, le=600)] = 5.0
    read_only: Annotated[bool, _Lenient] = False


class EmbedderSettings(Parsed):
    """Which in-process model makes the vectors; ``none`` leaves recall to keywords."""

    provider: Literal["wordllama", "none"] = "wordllama"
    dimensions: Annotated[int, _Lenient, AfterValidator(_offered)] = 256


class IdentitySettings(Parsed):
    """Who the command line speaks as, unless told otherwise."""

    tenant: Name = "local"
    owner: Name = "me"
    principal: Name = "cli"
    scope: Scope = "notes"
    sensitivity: Annotated[Sensitivity, _Lenient] = Sensitivity.INTERNAL
    read_ceiling: Annotated[Sensitivity, _Lenient] = Sensitivity.INTERNAL


class Settings(Parsed):
    """All settings."""

    store: Annotated[StoreSettings, _Lenient] = Field(default_factory=StoreSettings)
    embedder: Annotated[EmbedderSettings, _Lenient] = Field(default_factory=EmbedderSettings)
    identity: Annotated[IdentitySettings, _Lenient] = Field(default_factory=IdentitySettings)
