"""Settings: what a host or an operator may choose, with bounds; unknown keys are errors.

Read from ``remembrancer.toml`` and ``REMEMBRANCER_*`` by :mod:`.settings_sources`.  Secrets come
from the environment or from files only (design section 8).
"""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from remembrancer.composition.settings_postgres import ServerSettings
from remembrancer.domain.embedding_tuple import DIMENSIONS_MAX
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

WIDTHS = (64, 128, 256)
"""Dimensions to which the static model can be cut."""

_Lenient = Field(strict=False)  # The environment and the command line give text.


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _whole_number(value: object) -> object:
    """Take a number that the environment gives as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _offered(value: int) -> int:
    if value not in WIDTHS:
        raise ValueError(f"must be one of {', '.join(map(str, WIDTHS))}")
    return value


class StoreSettings(ServerSettings):
    """Where the memory is kept: log, vault, words and vectors in one place."""

    backend: Literal["sqlite", "memory", "postgres"] = "sqlite"
    path: Annotated[Path, _Lenient] = Path("memory.db")
    busy_timeout_s: Annotated[float, Field(strict=False, gt=0, le=600)] = 5.0
    read_only: Annotated[bool, _Lenient] = False

    @property
    def place(self) -> str:
        """How messages call it: a file's path, or what it is."""
        names = {"memory": "this process", "postgres": "PostgreSQL"}
        return names.get(self.backend) or str(self.path)


class VectorStoreSettings(Parsed):
    """Where vectors are kept: with the entries (``local``), or in Qdrant, which follows them.

    What is left out is the server's own default.
    """

    backend: Literal["local", "qdrant"] = "local"
    url: Name | None = None
    """Of a server, such as ``https://qdrant.example:6333``."""
    path: Annotated[Path | None, _Lenient] = None
    """Of a folder that Qdrant's client keeps by itself: for development, one process at a time."""
    grpc: Annotated[bool, _Lenient] = False
    grpc_port: Annotated[int, _Lenient, Field(ge=1, le=65_535)] = 6334
    api_key_variable: Name | None = None
    """Environment variable that holds the API key."""
    api_key_file: Annotated[Path | None, _Lenient] = None
    """File that holds the API key."""
    ca_file: Annotated[Path | None, _Lenient] = None
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = "remembrancer"
    """Begins the names of the collections."""
    timeout_s: Annotated[int, _Lenient, Field(ge=1, le=600)] = 2
    """For all that one question asks of Qdrant; after it recall goes by keywords."""
    write_timeout_s: Annotated[int, _Lenient, Field(ge=1, le=3_600)] = 30
    exact: Annotated[bool, _Lenient] = False
    """Compare with every permitted vector, instead of walking a graph that misses a few."""
    hnsw_m: Annotated[int | None, _Lenient, Field(ge=0, le=512)] = None
    hnsw_payload_m: Annotated[int | None, _Lenient, Field(ge=0, le=512)] = None
    hnsw_ef_construct: Annotated[int | None, _Lenient, Field(ge=4, le=10_000)] = None
    hnsw_ef: Annotated[int, _Lenient, Field(ge=1, le=100_000)] = 128
    quantization: Literal["none", "scalar", "binary"] = "none"
    oversampling: Annotated[float, Field(strict=False, ge=1, le=100)] = 2.0
    on_disk: Annotated[bool, _Lenient] = False
    shards: Annotated[int | None, _Lenient, Field(ge=1, le=10_000)] = None
    replicas: Annotated[int | None, _Lenient, Field(ge=1, le=100)] = None
    write_consistency: Annotated[int | None, _Lenient, Field(ge=1, le=100)] = None
    read_consistency: Annotated[
        Literal["majority", "quorum", "all"] | Annotated[int, Field(ge=1, le=100)] | None,
        BeforeValidator(_whole_number),
    ] = None

    def model_post_init(self, _: object, /) -> None:
        """Check that it is said where Qdrant is, and that no key goes out in the open."""
        given = (self.url is not None) + (self.path is not None)
        if given > 1 or (self.backend == "qdrant" and not given):
            raise InvalidInputError(
                field="VectorStoreSettings.url", problem="or path is needed, one of them"
            )
        if self.url is not None:
            _check_url(self.url, has_key=bool(self.api_key_variable or self.api_key_file))


def _check_url(url: str, *, has_key: bool) -> None:
    field = "VectorStoreSettings.url"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInputError(field=field, problem="must begin with http:// or https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError(field=field, problem="must hold an address alone, no key")
    if has_key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InvalidInputError(
            field=field, problem="must begin with https:// where an API key goes with it"
        )


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
    vector_store: Annotated[VectorStoreSettings, _Lenient] = Field(
        default_factory=VectorStoreSettings
    )
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
