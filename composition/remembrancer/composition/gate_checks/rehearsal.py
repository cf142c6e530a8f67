"""A rehearsal: the production wiring in a scratch store, under an admission that opens nothing.

The preparation works only under an admission, and the checks run before there is one.  So the
rehearsal admits a stand-in: the configuration with its provider at ``rehearsal.invalid``, a name
that can never resolve.  The documents for it say that nothing ran.  Its digest is never the
configured one, it stays in this process, and the only provider it is wired with is
:class:`CountingProvider`; whatever it sent could reach nobody (adr/0015).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import override

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.memory.admission_source import MemoryAdmission
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.blocking import run_blocking
from remembrancer.application.ports import Clock
from remembrancer.application.ports.embedding_provider import EmbeddingProvider
from remembrancer.application.ports.guards import Guards
from remembrancer.application.prepare_queries import PreparationReport
from remembrancer.composition.gate_checks.counting_provider import DESTINATION
from remembrancer.composition.preparation import Admission, Preparation, preparation_under
from remembrancer.composition.remote import RemoteSettings, configuration_of, guards_of
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.composition.store import Store, open_store
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.destination import Destination
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.release import Evidence
from remembrancer.domain.sensitivity import Sensitivity

TENANT = "rehearsal"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class StoppedClock(Clock):
    """Shows one time of day; durations are real."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self._real = SystemClock()

    @override
    def now(self) -> datetime:
        return self.at

    @override
    def monotonic(self) -> float:
        return self._real.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What all checks share: the configured parts, and a folder of their own."""

    settings: Settings
    folder: Path
    configuration: Configuration
    """The stand-in: as configured, but for the provider's URL."""
    guards: Guards = field(repr=False)
    """The real ones, with their rules as configured."""
    destination: str
    """Where the configured provider is; guards judge it, nobody connects to it."""

    @classmethod
    def of(cls, settings: Settings, folder: Path) -> "Rehearsal":
        """Rehearse what ``settings`` configure.

        Raises:
            SettingsError: no provider is configured.
            InvalidInputError: the settings don't fit together.
        """
        remote = RemoteSettings.of(settings)
        guards = guards_of(remote, warm=True)
        configured = configuration_of(remote, guards)
        return cls(
            settings=settings,
            folder=folder,
            configuration=stand_in(configured),
            guards=guards,
            destination=configured.provider.url,
        )

    @contextmanager
    def store(self, name: str, clock: Clock | None = None) -> Generator[Store]:
        """Open a scratch store: a real SQLite file, made if missing."""
        place = StoreSettings(path=self.folder / f"{name}.db", busy_timeout_s=30)
        with open_store(
            place, clock=clock or SystemClock(), randomness=SystemRandomness()
        ) as store:
            yield store

    def admission(self) -> MemoryAdmission:
        """Admit the stand-in; see the module."""
        return MemoryAdmission(
            configuration=self.configuration,
            clock=SystemClock(),
            evidence=[_nothing_ran(gate, self.configuration) for gate in Gate],
        )

    def preparation(
        self,
        store: Store,
        provider: EmbeddingProvider,
        *,
        admission: Admission | None = None,
        clock: Clock | None = None,
        destination: str | None = None,
    ) -> Preparation:
        """Wire the parts as production does."""
        return preparation_under(
            admission or self.admission(),
            self.configuration,
            provider=provider,
            guards=self.guards,
            destination=destination or self.destination,
            store=store,
            clock=clock or SystemClock(),
            randomness=SystemRandomness(),
        )

    def within(self, folder: Path) -> "Rehearsal":
        """Return the same in another folder."""
        folder.mkdir()
        return replace(self, folder=folder)


def asked(
    preparation: Preparation,
    owner: str,
    *questions: RecallQuery,
    within: RecallContext | None = None,
) -> PreparationReport:
    """Prepare questions of ``owner`` and return the report."""
    return run_blocking(
        partial(preparation.preparer, questions, within or context(), tenant=TENANT, owner=owner)
    )


def stand_in(configured: Configuration) -> Configuration:
    """Return the configuration with its provider where nobody can be."""
    plain: dict[str, Any] = configured.model_dump(mode="json")
    plain["provider"]["url"] = DESTINATION
    plain["egress"]["allowed_hosts"] = [Destination.parse(DESTINATION).host]
    return Configuration.parse(plain)


def query(owner: str, question: str, **changes: Any) -> RecallQuery:
    """Return a question that may leave."""
    plain: dict[str, Any] = {
        "tenant": TENANT,
        "owner": owner,
        "principal": "check",
        "scopes": ("rehearsal",),
        "read_ceiling": Sensitivity.INTERNAL,
        "question": question,
    }
    return RecallQuery(**plain | changes)


def context(**changes: Any) -> RecallContext:
    """Return the circumstances of a question."""
    plain: dict[str, Any] = {
        "policy_version": "rehearsal@1",
        "retrieval_policy_version": "rehearsal@1",
        "surface": "check",
        "task_digest": "none",
        "sensitivity_floor": Sensitivity.INTERNAL,
    }
    return RecallContext(**plain | changes)


def _nothing_ran(gate: Gate, configuration: Configuration) -> Evidence:
    return Evidence(
        gate=gate,
        configuration_digest=configuration.digest,
        mechanism_version=configuration.mechanism_version,
        ran=f"nothing: a stand-in at {DESTINATION}, for rehearsals only",
        by="rehearsal",
        at=_LONG_AGO,
        figures={demand.figure: demand.least for demand in GATES[gate].demands},
        artefact_digests={"none": "0" * 64},
    )
