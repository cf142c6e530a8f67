"""Admission: the decision that a configuration may send requests (design 4.5; adr/0011).

:func:`admit` is the only way to an :class:`AdmittedConfiguration`.  It wants evidence for all
twelve gates, for exactly this configuration and mechanism version.  Of several documents for one
gate the newest decides, so a good run can't cover up a bad one that came after it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, NoReturn, final

from pydantic import AwareDatetime, BeforeValidator, Field

from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.money import as_utc
from remembrancer.domain.parsed import FilledText, Name, Parsed
from remembrancer.domain.reservation import HexDigest

_SEAL: Final = object()


@dataclass(frozen=True, slots=True)
class _Seal:
    """Says of exactly which configuration :func:`admit` made its answer."""

    digest: str


def _from_iso(value: object) -> object:
    # Evidence is a file: JSON has no times.
    return datetime.fromisoformat(value) if isinstance(value, str) else value


class Evidence(Parsed):
    """One run's document for one gate; ``parse`` reads it from decoded JSON."""

    gate: Annotated[Gate, Field(strict=False)]
    configuration_digest: HexDigest
    mechanism_version: Name
    ran: FilledText
    """What ran: a command, a suite, a campaign; enough to run it again."""
    by: Name
    """Who or what ran it."""
    at: Annotated[AwareDatetime, BeforeValidator(_from_iso)]
    """When it ended; in JSON as ISO 8601 with an offset."""
    figures: Annotated[dict[Name, int], Field(max_length=256)]
    artefact_digests: Annotated[dict[Name, HexDigest], Field(min_length=1, max_length=256)]
    """SHA-256 of each file that the run left, by the file's name."""


class GateReason(StrEnum):
    """Why a gate is pending."""

    NO_CONFIGURATION = "no_configuration"
    """No provider is set, or the settings give no configuration that evidence could be about."""
    NO_EVIDENCE = "no_evidence"
    OTHER_CONFIGURATION = "other_configuration"
    """There is evidence, but for another configuration."""
    OTHER_MECHANISM_VERSION = "other_mechanism_version"
    IN_THE_FUTURE = "in_the_future"
    MISSING_FIGURE = "missing_figure"
    FIGURE_OUT_OF_BOUNDS = "figure_out_of_bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateProblem:
    """One reason, and the figure it is about, if it is about one."""

    reason: GateReason
    figure: str | None = None

    def __str__(self) -> str:
        return self.reason if self.figure is None else f"{self.reason}: {self.figure}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStatus:
    """Where one gate stands: pending while there is a problem."""

    gate: Gate
    problems: tuple[GateProblem, ...]
    evidence: tuple[Evidence, ...] = field(repr=False)
    """The documents that were decided on: the newest, and any of the same time."""

    @property
    def is_met(self) -> bool:
        """True where the evidence is in and good."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRefusal:
    """Why a configuration may not send."""

    configuration_digest: str
    gates: tuple[GateStatus, ...]

    @property
    def pending(self) -> tuple[Gate, ...]:
        """Gates that aren't met."""
        return tuple(status.gate for status in self.gates if not status.is_met)

    def error(self) -> NotAdmittedError:
        """Return the refusal as an error to raise."""
        return NotAdmittedError(tuple(gate.value for gate in self.pending))


@final
class AdmittedConfiguration:
    """A configuration that may send.  Only :func:`admit` makes one.

    There is one per admission: a copy is itself, and none can be unpickled, so whoever holds one
    knows that :func:`admit` said yes in this process.
    """

    __slots__ = ("_seal", "admitted_at", "configuration", "evidence")

    configuration: Configuration
    admitted_at: datetime
    evidence: tuple[Evidence, ...]
    _seal: _Seal

    def __new__(
        cls,
        configuration: Configuration,
        evidence: tuple[Evidence, ...],
        admitted_at: datetime,
        *,
        seal: object = None,
    ) -> "AdmittedConfiguration":
        """Make one for :func:`admit`."""
        if seal is not _SEAL:
            raise TypeError("only admit() makes an AdmittedConfiguration")
        admitted = super().__new__(cls)
        for name, value in (
            ("configuration", configuration),
            ("evidence", evidence),
            ("admitted_at", admitted_at),
            ("_seal", _Seal(configuration.digest)),
        ):
            object.__setattr__(admitted, name, value)
        return admitted

    def __init_subclass__(cls, **_: object) -> NoReturn:
        raise TypeError("AdmittedConfiguration has no subclasses")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} of an admitted configuration can't be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} of an admitted configuration can't be deleted")

    def __copy__(self) -> "AdmittedConfiguration":
        return self

    def __deepcopy__(self, _: Mapping[int, object]) -> "AdmittedConfiguration":
        return self

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("an admission is decided in each process; pass configuration and evidence")

    def __repr__(self) -> str:
        return f"AdmittedConfiguration({self.digest})"

    @property
    def digest(self) -> str:
        """The configuration's digest."""
        return self.configuration.digest


def gate_statuses(
    configuration: Configuration, evidence: Iterable[Evidence], *, at: datetime
) -> tuple[GateStatus, ...]:
    """Return where each of the twelve gates stands for ``configuration`` at a time.

    Raises:
        InvalidInputError: configuration or evidence was made without its own checks.
    """
    configuration = _checked(configuration)
    # Again: a model made or copied without validation could hold NaN, which no bound stops.
    documents = [Evidence.parse(one.model_dump(warnings=False)) for one in evidence]
    return tuple(
        _status(gate, configuration, [one for one in documents if one.gate is gate], as_utc(at))
        for gate in Gate
    )


def admit(
    configuration: Configuration, evidence: Iterable[Evidence], *, at: datetime
) -> AdmittedConfiguration | AdmissionRefusal:
    """Admit ``configuration`` if all twelve gates are met; else say which aren't, and why.

    ``at`` is the present; evidence from later counts against its gate.

    Raises:
        InvalidInputError: configuration or evidence was made without its own checks.
    """
    configuration = _checked(configuration)
    statuses = gate_statuses(configuration, evidence, at=at)
    if not all(status.is_met for status in statuses):
        return AdmissionRefusal(configuration_digest=configuration.digest, gates=statuses)
    decided_on = tuple(one for status in statuses for one in status.evidence)
    return AdmittedConfiguration(configuration, decided_on, as_utc(at), seal=_SEAL)


def require_admitted(value: object) -> AdmittedConfiguration:
    """Return ``value`` if :func:`admit` made it, and of the configuration that it holds now.

    Raises:
        NotAdmittedError: it is nothing, or something that only looks admitted.
    """
    if type(value) is AdmittedConfiguration:
        seal, configuration = getattr(value, "_seal", None), getattr(value, "configuration", None)
        if (
            type(seal) is _Seal
            and type(configuration) is Configuration
            and seal.digest == configuration.digest
        ):
            return value
    raise NotAdmittedError(tuple(gate.value for gate in Gate))


def _checked(configuration: Configuration) -> Configuration:
    # Into this very class: a subclass could state another digest than its own.
    return Configuration.parse(configuration.model_dump(warnings=False))


def _status(
    gate: Gate, configuration: Configuration, documents: list[Evidence], at: datetime
) -> GateStatus:
    ours = [one for one in documents if one.configuration_digest == configuration.digest]
    ours_now = [one for one in ours if one.mechanism_version == configuration.mechanism_version]
    if not ours_now:
        if ours:
            reason = GateReason.OTHER_MECHANISM_VERSION
        else:
            reason = GateReason.OTHER_CONFIGURATION if documents else GateReason.NO_EVIDENCE
        return GateStatus(gate=gate, problems=(GateProblem(reason=reason),), evidence=())
    newest_at = max(one.at for one in ours_now)
    newest = tuple(one for one in ours_now if one.at == newest_at)
    problems = [problem for one in newest for problem in _problems(one, configuration, at)]
    return GateStatus(gate=gate, problems=tuple(dict.fromkeys(problems)), evidence=newest)


def _problems(one: Evidence, configuration: Configuration, at: datetime) -> list[GateProblem]:
    problems = []
    if one.at > at:
        problems.append(GateProblem(reason=GateReason.IN_THE_FUTURE))
    demands = GATES[one.gate].demands
    missing = [demand.figure for demand in demands if demand.figure not in one.figures]
    if missing:
        return problems + [
            GateProblem(reason=GateReason.MISSING_FIGURE, figure=figure) for figure in missing
        ]
    return problems + [
        GateProblem(reason=GateReason.FIGURE_OUT_OF_BOUNDS, figure=demand.figure)
        for demand in demands
        if not demand.is_met(one.figures, configuration)
    ]
