"""Gate ``correction_and_erasure``: originals that changed between preparation and recall."""

from dependency_injector import providers

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.rehearsal import (
    TENANT,
    Rehearsal,
    asked,
    context,
    query,
)
from remembrancer.composition.preparation import Preparation
from remembrancer.composition.settings import EmbedderSettings, Settings
from remembrancer.composition.store import Store
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.gate import Gate
from remembrancer.domain.recall import RecallKind, RecallMode
from remembrancer.domain.sensitivity import Sensitivity

EACH = 10
_OWNER = "owner"
_KINDS = (RecallKind.AUTOMATIC, RecallKind.DELIBERATE)


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Prepare, correct or erase what the vector finds, and recall again."""
    stale: list[str] = []
    with rehearsal.store("originals") as store:
        provider = CountingProvider(rehearsal.configuration)
        preparation = rehearsal.preparation(store, provider)
        memory = _memory(store, preparation)
        originals = memory.remember_many(
            [_entry(f"Constraint {number} holds.") for number in range(2 * EACH)]
        )
        require(
            memory.status().versions_by_vector == len(originals),
            "entries got no vectors: see ceilings and guards",
        )
        questions = [
            query(_OWNER, "What must be respected?", kind=kind, limit=4 * EACH) for kind in _KINDS
        ]
        asked(preparation, _OWNER, *questions)
        before = [memory.recall(one, context()) for one in questions]
        require(
            all(one.mode is not RecallMode.SPARSE for one in before)
            and all(len(one.entries) == len(originals) for one in before),
            "recall did not use the prepared vectors",
        )
        texts = {one.entry_id: one.text for one in before[0].entries}
        for number, entry_id in enumerate(originals):
            if number < EACH:
                memory.correct(entry_id, text=f"Rule {number} is void.", reason="rehearsal")
            else:
                memory.erase(entry_id, reason="rehearsal")
            for one in questions:
                found = memory.recall(one, context())
                stale += [what.text for what in found.entries if what.text == texts[entry_id]]
    return {
        Gate.CORRECTION_AND_ERASURE: Measured(
            figures={
                "corrections": EACH,
                "erasures": EACH,
                "stale_originals_recalled": len(stale),
            },
            raw={"kinds": [kind.value for kind in _KINDS], "stale": stale},
        )
    }


def _memory(store: Store, preparation: Preparation) -> Remembrancer:
    """Wire a memory of the scratch store that buys its vectors from the counting provider."""
    from remembrancer.composition.assembly import wired  # noqa: PLC0415  # it loads this lazily

    container = wired(Settings(embedder=EmbedderSettings(provider="none")))
    container.clock.override(providers.Object(SystemClock()))
    container.randomness.override(providers.Object(SystemRandomness()))
    container.store.override(providers.Object(store))
    container.preparation.override(providers.Object(preparation))
    return Remembrancer(container, close=lambda: None)


def _entry(text: str) -> NewEntry:
    return NewEntry(
        tenant=TENANT,
        owner=_OWNER,
        scope="rehearsal",
        text=text,
        sensitivity=Sensitivity.INTERNAL,
    )
