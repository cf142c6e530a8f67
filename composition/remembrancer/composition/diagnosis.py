"""A check-up: is everything there, does it fit together, and what is to be done."""

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.application.ports import IndexState, VectorIndex
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.composition.settings_postgres import LOGINS, optional_connection_string
from remembrancer.composition.vector_places import QDRANT, key_problem, require_answer
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import SettingsError, StoreError

APPROXIMATE = "approximate index"
"""What a server's check-up calls it."""
PACKAGES = ("apsw", "eventsourcing", "numkong", "numpy", "sqlite-vec", "wordllama")


_NO_DENSE = {
    "no_vector_index": "none yet, as after a restore: recall goes by keywords",
    "no_embedder_for_index": "another model made them than is set: recall goes by keywords",
}
CARRY_OVER = "`remembrancer project` carries them over"

_PENDING = {
    "sqlite": "another process still reads an old state; end it and run again",
    "postgres": "deleted rows lie in the files until `remembrancer maintain clear`, as the owner, "
    "writes the tables anew",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str
    advice: str = ""


def diagnose(memory: Remembrancer, settings: Settings, *, deep: bool = False) -> list[Finding]:
    """Look at the installation and an open memory; changes nothing but pending erasures.

    A damaged file isn't touched any further.
    """
    store = [
        Finding(what=what, ok=ok, found=found, advice=advice)
        for what, ok, found, advice in memory.check_up(deep=deep)
    ]
    if settings.store.backend == "sqlite" and not all(one.ok for one in store):
        return [_packages(), *store]
    return [
        _packages(),
        *store,
        _erasure(memory, settings),
        *_counted(memory, settings),
        *_provider(memory, settings),
    ]


def diagnose_without(settings: Settings, error: StoreError) -> list[Finding]:
    """Look at what can be seen although the server can't be had."""
    there = [
        who
        for login, who in LOGINS.items()
        if optional_connection_string(settings.store, login, os.environ) is not None
    ]
    return [
        _packages(),
        Finding(
            what="settings", ok=True, found=f"connection strings are there of {', '.join(there)}"
        ),
        Finding(what="server", ok=False, found="no memory could be opened", advice=str(error)),
    ]


def _packages() -> Finding:
    return Finding(
        what="packages",
        ok=True,
        found=", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
    )


def _counted(memory: Remembrancer, settings: Settings) -> list[Finding]:
    """Look at what counting over all tenants tells, where that may be read."""
    try:
        return [
            _vectors(memory),
            _spaces(memory),
            *_carried(memory),
            *_elsewhere(memory, settings),
            *_dimensions(memory, settings),
        ]
    except SettingsError as error:
        return [Finding(what="counts", ok=False, found="can't be read", advice=str(error))]


def _erasure(memory: Remembrancer, settings: Settings) -> Finding:
    if _only_readable(settings.store):
        return Finding(what="erasures", ok=True, found="not looked at: may only be read")
    done = memory.finish_erasure()
    advice = _PENDING.get(settings.store.backend, _PENDING["sqlite"])
    if not done and waits_elsewhere(memory, settings):
        advice = f"vectors wait to be destroyed where they are kept: {CARRY_OVER}"
    return Finding(
        what="erasures",
        ok=done,
        found="nothing erased is left in the files" if done else "pending",
        advice="" if done else advice,
    )


def waits_elsewhere(memory: Remembrancer, settings: Settings) -> bool:
    """Say whether a pending erasure waits for an index that is kept elsewhere."""
    # On PostgreSQL, where this needs the auditor's login, its own files wait too.
    return settings.store.backend != "postgres" and memory.status().waiting_erasures > 0


def _only_readable(store: StoreSettings) -> bool:
    if store.read_only or store.backend != "sqlite":
        return store.read_only
    return not (
        os.access(store.path, os.W_OK) and os.access(store.path.absolute().parent, os.W_OK)
    )


def _vectors(memory: Remembrancer) -> Finding:
    stands = memory.status()
    if stands.dense == "no_vector_index" and stands.entries == 0:
        return Finding(what="vectors", ok=True, found="nothing remembered yet")
    if stands.dense == "vector_index_unavailable" or stands.versions_by_vector is None:
        return Finding(
            what="vectors",
            ok=False,
            found="the index that is kept elsewhere doesn't answer: recall goes by keywords",
            advice="see to Qdrant; `remembrancer reindex --to local` brings the vectors back",
        )
    if stands.dense != "ready":
        return Finding(
            what="vectors",
            ok=False,
            found=_NO_DENSE.get(stands.dense, stands.dense),
            advice="`remembrancer reindex` makes one with the embedder that is set",
        )
    missing = stands.versions_by_words - stands.versions_by_vector
    found = (
        f"{counted(stands.versions_by_vector, 'vector')} for "
        f"{counted(stands.versions_by_words, 'version')}"
    )
    advice = ""
    if missing:
        advice = (
            "found by keywords: texts without a known word, and those written while another model "
            "made the vectors; `remembrancer reindex` gives these one"
        )
    return Finding(what="vectors", ok=True, found=found, advice=advice)


def _spaces(memory: Remembrancer) -> Finding:
    stands = memory.status()
    for one in stands.indexes:
        if one.state is IndexState.BUILDING:
            return _unfinished(one, stands.events)
    retired = [one for one in stands.indexes if one.state is IndexState.RETIRED]
    if not retired:
        found = "one answers, no other is kept" if stands.indexes else "no vector index yet"
        return Finding(what="indexes", ok=True, found=found)
    numbers = ", ".join(f"{one.number} ({one.state.value})" for one in retired)
    return Finding(
        what="indexes",
        ok=True,
        found=f"kept beside the one that answers: {numbers}",
        advice="`remembrancer reindex --only-drop-retired` destroys those that answered once",
    )


def _unfinished(index: VectorIndex, end: int) -> Finding:
    # Whether somebody is at it just now isn't on record where the store keeps the vectors itself.
    return Finding(
        what="indexes",
        ok=False,
        found=f"index {index.number} was begun and isn't finished: position {index.position} of "
        f"{end}",
        advice="unless a reindex runs just now: `remembrancer reindex` goes on from there, "
        "`remembrancer reindex --drop-unfinished` gives it up",
    )


def _carried(memory: Remembrancer) -> list[Finding]:
    """Say how far an index that is kept elsewhere is behind."""
    stands = memory.status()
    if not any(one.follows for one in stands.indexes):
        return []
    waiting = stands.waiting_erasures
    found = (
        f"{counted(stands.behind, 'position')} behind the log, {counted(waiting, 'erasure')} "
        "waiting to be carried over"
    )
    return [
        Finding(
            what="projection",
            ok=not waiting,
            found=found,
            advice=CARRY_OVER if stands.behind or waiting else "",
        )
    ]


def _elsewhere(memory: Remembrancer, settings: Settings) -> list[Finding]:
    """Say whether Qdrant answers where the next index goes there; of those there others tell."""
    places, indexes = settings.vector_store, memory.status().indexes
    problem = _vector_key_problem(settings, indexes)
    if problem is not None:
        return [Finding(what="qdrant", ok=False, found="its key is missing", advice=problem)]
    if places.backend != QDRANT or places.url is None or any(one.follows for one in indexes):
        return []
    try:
        require_answer(places, clock=SystemClock())
    except (SettingsError, StoreError) as error:
        return [Finding(what="qdrant", ok=False, found="can't be used", advice=str(error))]
    return [Finding(what="qdrant", ok=True, found="answers; no vectors are there yet")]


def _vector_key_problem(settings: Settings, indexes: Sequence[VectorIndex]) -> str | None:
    places = settings.vector_store
    used = places.backend == QDRANT or any(one.follows for one in indexes)
    return key_problem(places) if used and places.url is not None else None


def missing_secrets(settings: Settings, indexes: Sequence[VectorIndex]) -> list[str]:
    """Return what is wrong with the keys that the settings name and that are needed."""
    problems = [_vector_key_problem(settings, indexes), _provider_key_problem(settings)]
    return [one for one in problems if one is not None]


def _dimensions(memory: Remembrancer, settings: Settings) -> list[Finding]:
    """Say where the settings ask for vectors of another width than those that answer."""
    wanted = settings.embedder
    active = [one for one in memory.status().indexes if one.state is IndexState.ACTIVE]
    spaces = [one.embedding_tuple for one in active]
    if not [
        one
        for one in spaces
        if one.provider == wanted.provider and one.dimensions != wanted.dimensions
    ]:
        return []
    return [
        Finding(
            what="dimensions",
            ok=True,
            found=f"{spaces[0].dimensions} answer, {wanted.dimensions} are set",
            advice="`remembrancer reindex` switches to what is set",
        )
    ]


def provider_state(memory: Remembrancer, settings: Settings) -> str | None:
    """Return how far a remote provider has come; None where none is configured."""
    if settings.provider is None:
        return None
    report = memory.gates()
    met = len(report.gates) - len(report.pending)
    return report.problem or f"configured, {met} of {len(report.gates)} gates are met"


def after_reindexing(memory: Remembrancer, settings: Settings, index: VectorIndex) -> list[str]:
    """Return what whoever reindexed may have expected otherwise."""
    on_server = memory.check_up() if settings.store.backend == "postgres" else ()
    told = [
        f"The {what} is {found}: {advice}."
        for what, _, found, advice in on_server
        if what == APPROXIMATE and advice
    ]
    if settings.provider is not None and memory.gates().pending:
        told.append(
            f"The model in this process ({index.embedding_tuple.provider}) made these vectors, "
            f"not the provider: it is {provider_state(memory, settings)}. `remembrancer gates` "
            "says what is missing."
        )
    return told


def _provider(memory: Remembrancer, settings: Settings) -> list[Finding]:
    state = provider_state(memory, settings)
    if settings.provider is None or state is None:
        return []
    problem = _provider_key_problem(settings)
    if problem is not None:
        key = "the API key is missing"
    elif settings.provider.api_key_variable or settings.provider.api_key_file:
        key = "an API key is there"
    else:
        key = "no API key is set"
    pending = memory.gates().pending
    return [
        Finding(
            what="provider",
            ok=problem is None,
            found=f"{state}; {key}",
            advice=problem or ("`remembrancer gates` says what is missing" if pending else ""),
        )
    ]


def _provider_key_problem(settings: Settings) -> str | None:
    if settings.provider is None:
        return None
    # Loads what only a provider needs.
    from remembrancer.composition.remote import secret_of  # noqa: PLC0415

    try:
        secret_of(settings.provider).read()
    except SettingsError as error:
        return str(error)
    return None
