"""The remote parts: configuration, guards, provider, and what an admission brings.

Imported only where settings name a provider.  The configuration and its admission need no HTTP
client; the lookup and the preparer are built once a configuration is admitted, and not before.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from remembrancer.adapters.admission.admission_source import FolderAdmission
from remembrancer.adapters.admission.evidence_folder import EvidenceFolder
from remembrancer.adapters.guards.guards import LocalGuards, SecondEngine
from remembrancer.adapters.guards.residency import ResidencyRules
from remembrancer.adapters.provider.secret_source import (
    NoSecret,
    SecretFromEnvironment,
    SecretFromFile,
    SecretSource,
)
from remembrancer.application.ports import Clock
from remembrancer.application.ports.guards import Guards
from remembrancer.composition.settings import (
    CeilingSettings,
    EgressSettings,
    PricingSettings,
    ProviderSettings,
    Settings,
)
from remembrancer.domain.configuration import Configuration, Egress, Provider
from remembrancer.domain.destination import DEFAULT_PORTS, Destination
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import SettingsError
from remembrancer.domain.money import Pricing
from remembrancer.domain.reservation import Ceilings

NO_PROVIDER = (
    "no provider is configured; add the sections provider, pricing, ceilings and egress, as the "
    'README shows under "Remote embeddings"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """The four sections that a provider needs."""

    provider: ProviderSettings
    pricing: PricingSettings
    ceilings: CeilingSettings
    egress: EgressSettings

    @classmethod
    def of(cls, settings: Settings) -> "RemoteSettings":
        """Take them out of the settings.

        Raises:
            SettingsError: no provider is configured.
        """
        parts = (settings.provider, settings.pricing, settings.ceilings, settings.egress)
        provider, pricing, ceilings, egress = parts
        if provider is None or pricing is None or ceilings is None or egress is None:
            raise SettingsError(setting="provider", problem=NO_PROVIDER)
        return cls(provider=provider, pricing=pricing, ceilings=ceilings, egress=egress)


def embedding_tuple_of(provider: ProviderSettings) -> EmbeddingTuple:
    """Return the space of the provider's vectors."""
    return EmbeddingTuple(
        provider=Destination.parse(provider.url).host,
        model=provider.model,
        model_revision=provider.model_revision,
        dimensions=provider.dimensions,
        input_preparation=provider.input_preparation,
    )


def guards_of(remote: RemoteSettings, *, warm: bool = False) -> LocalGuards:
    """Return the guards with their rules as they are set.

    ``warm`` compiles a second engine's rules now: that takes seconds, and a preparation has ten.
    """
    residency = ResidencyRules(region=remote.provider.region, allowed=remote.egress.allowed_hosts)
    return LocalGuards(residency=residency, engines=_engines(remote.egress, warm=warm))


def configuration_of(remote: RemoteSettings, guards: Guards) -> Configuration:
    """Return what is admitted, or not, as a whole.

    Raises:
        SettingsError: the provider isn't among the allowed hosts, to scheme and port.
        InvalidInputError: its parts don't fit together.
    """
    allowed = [
        Destination.parse(one if "://" in one else f"https://{one}")
        for one in remote.egress.allowed_hosts
    ]
    _require_allowed(Destination.parse(remote.provider.url), allowed)
    return Configuration(
        provider=Provider(
            url=remote.provider.url,
            region=remote.provider.region,
            proxy_url=remote.provider.proxy_url,
            authorities_digest=_authorities_digest(remote.provider),
            asks_for_dimensions=remote.provider.ask_for_dimensions,
        ),
        embedding_tuple=embedding_tuple_of(remote.provider),
        pricing=Pricing(
            usd_per_million_tokens=remote.pricing.usd_per_million_tokens,
            input_overhead_tokens=remote.pricing.input_overhead_tokens,
            request_overhead_tokens=remote.pricing.request_overhead_tokens,
        ),
        ceilings=Ceilings(
            quanta_per_day=remote.ceilings.quanta_per_day,
            requests_per_day=remote.ceilings.requests_per_day,
        ),
        egress=Egress(
            allowed_regions=remote.egress.allowed_regions,
            allowed_hosts=tuple(one.host for one in allowed),
            guard_rule_sets=guards.rule_sets,
            guards_digest=guards.digest,
        ),
    )


def _require_allowed(provider: Destination, allowed: list[Destination]) -> None:
    """See now what the residency rules would refuse at the first request."""
    if provider.origin not in {one.origin for one in allowed}:
        entry = provider.origin.removesuffix(f":{DEFAULT_PORTS[provider.scheme]}")
        entry = entry.removeprefix("https://")
        raise SettingsError(
            setting="egress.allowed_hosts", problem=f'must hold "{entry}", where the provider is'
        )


def _authorities_digest(provider: ProviderSettings) -> str | None:
    if provider.ca_file is None:
        return None
    try:
        return hashlib.sha256(provider.ca_file.read_bytes()).hexdigest()
    except OSError:
        raise SettingsError(setting="provider.ca_file", problem="can't be read") from None


def current_configuration(settings: Settings) -> Configuration:
    """Return the configuration that ``settings`` describe.

    Raises:
        SettingsError: no provider is configured, or its certificates can't be read.
        InvalidInputError: its parts don't fit together.
    """
    remote = RemoteSettings.of(settings)
    return configuration_of(remote, guards_of(remote))


def folder_admission(
    settings: Settings, read: Callable[[], Settings], clock: Clock
) -> FolderAdmission:
    """Return the admission of what ``read`` says now, by the evidence in the settings' folder."""
    return FolderAdmission(
        folder=EvidenceFolder(settings.admission.evidence),
        current=_remembering(read),
        clock=clock,
    )


def _remembering(read: Callable[[], Settings]) -> Callable[[], Configuration]:
    """Make the configuration only when the settings have changed: it is asked for each second."""
    last: list[tuple[Settings, Configuration]] = []

    def current() -> Configuration:
        settings = read()
        if not last or last[0][0] != settings:
            last[:] = [(settings, current_configuration(settings))]
        return last[0][1]

    return current


def _engines(egress: EgressSettings, *, warm: bool) -> list[SecondEngine]:
    if egress.second_engine == "none":
        return []
    # An engine is chosen.
    from remembrancer.adapters.guards.kingfisher import KingfisherEngine  # noqa: PLC0415

    engine = KingfisherEngine()
    if warm:
        engine.warm_up()
    return [engine]


def secret_of(provider: ProviderSettings) -> SecretSource:
    """Return where the API key is read from: a variable, a file, or nowhere."""
    if provider.api_key_file is not None:
        return SecretFromFile(path=provider.api_key_file)
    if provider.api_key_variable is not None:
        return SecretFromEnvironment(name=provider.api_key_variable, environment=os.environ)
    return NoSecret()
