"""Settings: what a host or an operator may choose, with bounds; unknown keys are errors.

Read from ``remembrancer.toml`` and ``REMEMBRANCER_*`` by :mod:`.settings_sources`.  Secrets come
from the environment or from files only (design section 8).
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from remembrancer.domain.embedding_tuple import DIMENSIONS_MAX
from remembrancer.domain.errors import InvalidInputError
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


class ProviderSettings(Parsed):
    """A remote embedding provider with an OpenAI-compatible ``/v1/embeddings``.

    Nothing is sent to it until the whole configuration is admitted with evidence.
    """

    url: Name
    region: Name
    model: Name
    model_revision: Name
    dimensions: Annotated[int, _Lenient, Field(ge=1, le=DIMENSIONS_MAX)]
    input_preparation: Name = "as-is@1"
    ask_for_dimensions: Annotated[bool, _Lenient] = False
    """Whether the request names the dimensions; some models can shorten their vectors."""
    api_key_variable: Name | None = None
    """Environment variable that holds the API key."""
    api_key_file: Annotated[Path | None, _Lenient] = None
    """File that holds the API key."""
    ca_file: Annotated[Path | None, _Lenient] = None
    proxy_url: Name | None = None


class PricingSettings(Parsed):
    """What the provider charges; exact decimals as text."""

    usd_per_million_tokens: Name
    input_overhead_tokens: Annotated[int, _Lenient, Field(ge=0)] = 16
    request_overhead_tokens: Annotated[int, _Lenient, Field(ge=0)] = 0


class CeilingSettings(Parsed):
    """How much one owner may spend a UTC day."""

    quanta_per_day: Annotated[int, _Lenient, Field(ge=0)]
    """In quanta; 1,000,000 quanta are one USD."""
    requests_per_day: Annotated[int, _Lenient, Field(ge=0)]


class EgressSettings(Parsed):
    """Where texts may go, and who looks at them before."""

    allowed_regions: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    allowed_hosts: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    second_engine: Literal["none", "kingfisher"] = "none"
    """A second credential detector beside the own rules; needs the extra ``guards``."""


class AdmissionSettings(Parsed):
    """Where the evidence lies: one JSON document per file."""

    evidence: Annotated[Path, _Lenient] = Path("evidence")


class Settings(Parsed):
    """All settings.  ``provider`` brings ``pricing``, ``ceilings`` and ``egress`` with it."""

    store: Annotated[StoreSettings, _Lenient] = Field(default_factory=StoreSettings)
    embedder: Annotated[EmbedderSettings, _Lenient] = Field(default_factory=EmbedderSettings)
    identity: Annotated[IdentitySettings, _Lenient] = Field(default_factory=IdentitySettings)
    provider: Annotated[ProviderSettings | None, _Lenient] = None
    pricing: Annotated[PricingSettings | None, _Lenient] = None
    ceilings: Annotated[CeilingSettings | None, _Lenient] = None
    egress: Annotated[EgressSettings | None, _Lenient] = None
    admission: Annotated[AdmissionSettings, _Lenient] = Field(default_factory=AdmissionSettings)

    def model_post_init(self, _: object, /) -> None:
        """Check that a provider comes with all that decides about it."""
        parts = {"pricing": self.pricing, "ceilings": self.ceilings, "egress": self.egress}
        if self.provider is None:
            return
        missing = [name for name, part in parts.items() if part is None]
        if missing:
            raise InvalidInputError(
                field="Settings.provider", problem=f"needs the sections {', '.join(missing)} too"
            )
