"""A configuration: everything that decides what may be sent, where to, and for how much.

Its digest is what evidence is about: another URL, region, model, price, ceiling or guard rule is
another configuration, and needs an admission of its own (design 4.5; adr/0011).
"""

import hashlib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from remembrancer.domain.bounds import MECHANISM_VERSION
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.destination import Destination
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import Pricing
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.reservation import Ceilings, HexDigest, SpendTerms

_Several = Field(strict=False, min_length=1, max_length=64)


def _url(value: str) -> str:
    try:
        destination = Destination.parse(value)
    except InvalidInputError as refusal:
        raise ValueError(refusal.problem) from None
    if destination.scheme != "https" and not destination.is_loopback:
        raise ValueError("must begin with https://, unless it is on this machine")
    return str(destination)


def _proxy_url(value: str) -> str:
    try:
        return Destination.parse(value).origin
    except InvalidInputError as refusal:
        raise ValueError(refusal.problem) from None


def _sorted(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


Url = Annotated[str, AfterValidator(_url)]
"""Where requests go, in the one spelling of :class:`Destination`."""

ProxyUrl = Annotated[str, AfterValidator(_proxy_url)]
"""What requests go through: scheme, host and port, in that same spelling."""

Names = Annotated[tuple[Name, ...], _Several, AfterValidator(_sorted)]
"""A set of names, sorted."""


class Provider(Parsed):
    """Who computes the vectors, in which region, and how requests get there."""

    url: Url
    region: Name
    proxy_url: ProxyUrl | None = None
    """What requests go through; None goes straight there."""
    authorities_digest: HexDigest | None = None
    """SHA-256 of the certificates to trust; None trusts the shipped list."""
    asks_for_dimensions: bool = False
    """Whether requests name the dimensions, and so decide what the vectors are."""

    def model_post_init(self, _: object, /) -> None:
        """Check that what must not leave this machine in the clear doesn't."""
        if self.proxy_url is None or self.destination.scheme == "https":
            return  # A proxy of https sees where a request goes to, and nothing else.
        if not Destination.parse(self.proxy_url).is_loopback:
            raise InvalidInputError(
                field="Provider.proxy_url", problem="must be on this machine, as the provider is"
            )

    @property
    def destination(self) -> Destination:
        """The URL, read."""
        return Destination.parse(self.url)


class Egress(Parsed):
    """What may leave, and where to: residency and guards, by version and by digest."""

    allowed_regions: Names
    allowed_hosts: Names
    guard_rule_sets: Names
    """Names and versions, such as ``credentials@1``."""
    guards_digest: HexDigest
    """Over every rule of every set."""


class Configuration(Parsed):
    """What is admitted, or not, as a whole."""

    provider: Provider
    embedding_tuple: EmbeddingTuple
    pricing: Pricing
    ceilings: Ceilings
    egress: Egress
    mechanism_version: Literal["semantic-query@1"] = MECHANISM_VERSION

    def model_post_init(self, _: object, /) -> None:
        """Check that the provider is where residency lets texts go."""
        if self.provider.region not in self.egress.allowed_regions:
            raise InvalidInputError(
                field="Configuration.provider", problem="its region isn't an allowed one"
            )
        if self.provider.destination.host not in self.egress.allowed_hosts:
            raise InvalidInputError(
                field="Configuration.provider", problem="its host isn't an allowed one"
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json"))).hexdigest()

    @property
    def spend_terms(self) -> SpendTerms:
        """What each reservation is decided by."""
        return SpendTerms(
            ceilings=self.ceilings,
            mechanism_version=self.mechanism_version,
            configuration_digest=self.digest,
            embedding_tuple_digest=self.embedding_tuple.digest,
            pricing_digest=self.pricing.digest,
        )

    @property
    def key_conditions(self) -> dict[str, Any]:
        """The configuration's part of every query key: all of it but the ceilings.

        A ceiling says how much may be prepared, not what a vector is.
        """
        return self.model_dump(mode="json", exclude={"ceilings"})
