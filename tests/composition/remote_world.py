"""A memory with a remote provider on this machine, and hands for its evidence."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from remembrancer.adapters.admission.evidence_folder import EvidenceFolder
from remembrancer.composition import Remembrancer, Settings, production
from remembrancer.composition.remote import current_configuration
from remembrancer.contracts.admission_examples import evidence_of
from remembrancer.contracts.loopback_provider import (
    Behaviour,
    LoopbackProvider,
    Received,
    answer_for,
    http_answer,
)
from remembrancer.domain import NewEntry, RecallContext, RecallQuery, Sensitivity
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import Gate

DIMENSIONS = 8
PRICE = "100"
"""USD per million tokens: 100 quanta a token, so that every token shows."""
WHO = {"tenant": "acme", "owner": "ana"}
KEY_VARIABLE = "LOOPBACK_API_KEY"


def settings_for(server_url: str, folder: Path, **sections: Any) -> Settings:
    """Return settings with a provider at ``server_url`` and everything else in ``folder``."""
    plain: dict[str, Any] = {
        "store": {"path": folder / "memory.db"},
        "embedder": {"provider": "none"},
        "provider": {
            "url": server_url,
            "region": "here",
            "model": "small",
            "model_revision": "1",
            "dimensions": DIMENSIONS,
        },
        "pricing": {"usd_per_million_tokens": PRICE, "input_overhead_tokens": 2},
        "ceilings": {"quanta_per_day": 10_000_000, "requests_per_day": 1_000},
        "egress": {
            "allowed_regions": ["here"],
            "allowed_hosts": [server_url.removesuffix("/v1")],
        },
        "admission": {"evidence": folder / "evidence"},
    }
    for name, values in sections.items():
        plain[name] = {**plain[name], **values} if name in plain else values
    return Settings.parse(plain)


@dataclass(kw_only=True)
class World:
    """Settings that can change, evidence that comes and goes, and a provider that counts."""

    folder: Path
    server: LoopbackProvider
    settings: Settings
    opened: list[Remembrancer] = field(default_factory=list)

    @property
    def configuration(self) -> Configuration:
        """What the settings amount to now."""
        return current_configuration(self.settings)

    @property
    def evidence(self) -> EvidenceFolder:
        """Where the evidence lies."""
        return EvidenceFolder(self.settings.admission.evidence)

    @property
    def sent(self) -> list[str]:
        """Every text that arrived at the provider, in order."""
        return [text for request in self.server.requests for text in request.texts]

    def admit(self, gates: Iterable[Gate] = Gate) -> None:
        """Write evidence for the configuration as it is now; nothing ran for it."""
        for gate in gates:
            at = datetime.now(UTC) - timedelta(minutes=1)
            self.evidence.write(evidence_of(gate, self.configuration, at=at))

    def revoke(self, gate: Gate = Gate.EGRESS_DENIAL) -> None:
        """Take a gate's evidence away."""
        for path in self.evidence.folder.glob(f"{gate.value}-*.json"):
            path.unlink()

    def change(self, **sections: Any) -> None:
        """Change the settings while everything runs."""
        self.settings = settings_for(self.server.url, self.folder, **sections)

    def open(self) -> Remembrancer:
        """Open the memory; it is closed with the world."""
        memory = production(self.settings, reread=lambda: self.settings)
        self.opened.append(memory)
        return memory


@contextmanager
def open_world(folder: Path, *behaviours: Behaviour, **sections: Any) -> Generator[World]:
    """Start a provider and write nothing yet."""
    with LoopbackProvider(*behaviours) as server:
        world = World(
            folder=folder, server=server, settings=settings_for(server.url, folder, **sections)
        )
        try:
            yield world
        finally:
            for memory in world.opened:
                memory.close()


def meaning(*pairs: Sequence[str]) -> Behaviour:
    """Answer with the same vector for texts that hold a word of the same group."""

    def vector(text: str) -> list[float]:
        groups = [number for number, words in enumerate(pairs) if any(w in text for w in words)]
        values = [0.01] * DIMENSIONS
        for number in groups:
            values[number % DIMENSIONS] = 1.0
        return values

    def behave(request: Received) -> None:
        answer = answer_for(request.texts, model=request.json["model"], dimensions=DIMENSIONS)
        for item, text in zip(answer["data"], request.texts, strict=True):
            item["embedding"] = vector(text)
        request.connection.sendall(http_answer(canonical_json(answer)))

    return behave


def an_entry(text: str, **changes: Any) -> NewEntry:
    plain: dict[str, Any] = {
        **WHO,
        "scope": "project/alpha",
        "text": text,
        "sensitivity": Sensitivity.INTERNAL,
    }
    return NewEntry(**plain | changes)


def a_query(question: str, **changes: Any) -> RecallQuery:
    plain: dict[str, Any] = {
        **WHO,
        "principal": "agent-7",
        "scopes": ("project",),
        "read_ceiling": Sensitivity.INTERNAL,
        "question": question,
    }
    return RecallQuery(**plain | changes)


QUERY = a_query("Which rule binds releases?")


def a_context(**changes: Any) -> RecallContext:
    plain: dict[str, Any] = {
        "policy_version": "p1",
        "retrieval_policy_version": "r1",
        "surface": "chat",
        "task_digest": "t1",
        "sensitivity_floor": Sensitivity.INTERNAL,
    }
    return RecallContext(**plain | changes)


def until(holds: Callable[[], bool], *, within_s: float) -> float:
    """Wait until something holds and return the seconds it took; fail if it takes longer."""
    import threading  # noqa: PLC0415  # only here
    import time  # noqa: PLC0415  # only here

    began, pause = time.monotonic(), threading.Event()
    while not holds():
        took = time.monotonic() - began
        assert took < within_s, f"not within {within_s} s"
        pause.wait(0.01)
    return time.monotonic() - began
