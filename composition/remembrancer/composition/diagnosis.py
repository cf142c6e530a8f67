"""A check-up: is everything there, does it fit together, and what is to be done."""

import importlib.metadata
import os
from dataclasses import dataclass

from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings, StoreSettings

PACKAGES = ("apsw", "eventsourcing", "numkong", "numpy", "sqlite-vec", "wordllama")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str
    advice: str = ""


def diagnose(memory: Remembrancer, settings: Settings) -> list[Finding]:
    """Look at the installation and an open memory; changes nothing but pending erasures."""
    return [
        Finding(
            what="packages",
            ok=True,
            found=", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
        ),
        _erasure(memory, settings),
        _vectors(memory),
        _spaces(memory),
    ]


def _erasure(memory: Remembrancer, settings: Settings) -> Finding:
    if _only_readable(settings.store):
        return Finding(what="erasures", ok=True, found="not looked at: may only be read")
    done = memory.finish_erasure()
    return Finding(
        what="erasures",
        ok=done,
        found="nothing erased is left in the files" if done else "pending",
        advice="" if done else "another process still reads an old state; end it and run again",
    )


def _only_readable(store: StoreSettings) -> bool:
    if store.read_only or store.backend != "sqlite":
        return store.read_only
    return not (
        os.access(store.path, os.W_OK) and os.access(store.path.absolute().parent, os.W_OK)
    )


def _vectors(memory: Remembrancer) -> Finding:
    stands = memory.status()
    missing = stands.versions_by_words - stands.versions_by_vector
    if stands.dense == "no_vector_index" and stands.entries == 0:
        return Finding(what="vectors", ok=True, found="nothing remembered yet")
    if stands.dense != "ready":
        return Finding(
            what="vectors",
            ok=False,
            found=stands.dense,
            advice="run `remembrancer reindex` with the embedder you want to use",
        )
    found = f"{stands.versions_by_vector} of {stands.versions_by_words} versions have one"
    advice = ""
    if missing:
        advice = (
            "found by keywords: texts without a known word, and those written while another model "
            "made the vectors; `remembrancer reindex` gives these one"
        )
    return Finding(what="vectors", ok=True, found=found, advice=advice)


def _spaces(memory: Remembrancer) -> Finding:
    retired = [one for one in memory.status().indexes if one.state != "active"]
    if not retired:
        return Finding(what="indexes", ok=True, found="one answers, no other is kept")
    numbers = ", ".join(f"{one.number} ({one.state.value})" for one in retired)
    return Finding(
        what="indexes",
        ok=True,
        found=f"kept beside the one that answers: {numbers}",
        advice="`remembrancer reindex --drop-retired` destroys what doesn't answer",
    )
