"""Commands that look after a memory: ``reindex``, ``project``, ``status``, ``doctor``."""

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from remembrancer.application.ports import VectorIndex
from remembrancer.application.ports.vector_indexes import LOCAL, IndexState
from remembrancer.application.projection import Projected
from remembrancer.application.reindex import Reindexed
from remembrancer.application.status import Status
from remembrancer.composition.cli.options import AsJson, Config, Db, Opened, opened, read_settings
from remembrancer.composition.cli.output import Output
from remembrancer.composition.cli.words import in_words
from remembrancer.composition.diagnosis import (
    Finding,
    after_reindexing,
    diagnose,
    diagnose_without,
    missing_secrets,
    provider_state,
)
from remembrancer.composition.settings import Settings
from remembrancer.composition.vector_places import QDRANT
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import InvalidInputError, SettingsError, StoreError

FOLLOW_INTERVAL_S = 1.0


def reindex(
    to: Annotated[
        str | None,
        typer.Option("--to", help="Keep the vectors there: local or qdrant (default: as set)."),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="Rebuild the keyword index too.")] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only give vectors to texts that have none.")
    ] = False,
    drop_retired: Annotated[
        bool, typer.Option("--drop-retired", help="Destroy indexes that don't answer any more.")
    ] = False,
    only_drop_retired: Annotated[
        bool, typer.Option("--only-drop-retired", help="Destroy these, and build nothing.")
    ] = False,
    drop_unfinished: Annotated[
        bool,
        typer.Option(
            "--drop-unfinished",
            help="As --only-drop-retired, and an index whose building broke off too.",
        ),
    ] = False,
    allow_gaps: Annotated[
        bool,
        typer.Option("--allow-gaps", help="Switch even where vectors couldn't be bought."),
    ] = False,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Build a fresh vector index beside the one that answers, then switch.

    Interrupted, it goes on from where it was.  The space is the configured embedder's.
    """
    with opened(db, config, as_json=as_json) as session:
        if missing:
            _missing(session)
            return
        if only_drop_retired or drop_unfinished:
            _drop_retired(session, unfinished=drop_unfinished)
            return
        with session.out.progress("reindexing") as progress:
            done = session.memory.reindex(
                place=_place(to, session.settings),
                words=words,
                drop_retired=drop_retired,
                allow_gaps=allow_gaps,
                progress=progress,
            )
        _show_reindexed(session, done)


def _show_reindexed(session: Opened, done: Reindexed) -> None:
    if session.out.as_json:
        session.out.data(
            {
                "index": _index_data(done.index),
                "vectors": done.vectors,
                "resumed_from": done.resumed_from,
                "retired": list(done.retired),
            }
        )
        return
    session.out.line(
        f"Index {done.index.number} answers now: {counted(done.vectors, 'vector')} of "
        f"{done.index.embedding_tuple}."
    )
    if done.resumed_from:
        session.out.line(f"Resumed from log position {done.resumed_from}.")
    if done.retired:
        kept = ", ".join(map(str, done.retired))
        session.out.line(f"Retired and kept: index {kept} (--only-drop-retired destroys them).")
    for advice in after_reindexing(session.memory, session.settings, done.index):
        session.out.line(advice, style="yellow")


def _place(name: str | None, settings: Settings) -> str | None:
    """Return where an index is to be kept, if that place is set up."""
    if name is None or name == LOCAL:
        return name
    if name != QDRANT:
        raise InvalidInputError(field="--to", problem=f"must be {LOCAL} or {QDRANT}")
    if settings.vector_store.url is None and settings.vector_store.path is None:
        raise SettingsError(setting="vector_store.url", problem="or path is needed for that")
    return name


def project(
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as entries come, until interrupted.")
    ] = False,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Carry entries to the vector index that is kept elsewhere, and say how it stands."""
    with opened(db, config, as_json=as_json) as session:
        while True:
            with session.out.progress("carrying") as progress:
                stands = session.memory.project(progress=progress)
            _show_projected(session, stands)
            if not follow:
                return
            time.sleep(FOLLOW_INTERVAL_S)


def _show_projected(session: Opened, stands: Projected) -> None:
    index = stands.index
    if session.out.as_json:
        session.out.data(
            {
                "index": None if index is None else _index_data(index),
                "end": stands.end,
                "behind": stands.behind,
                "waiting_vectors": stands.waiting_vectors,
                "waiting_erasures": stands.waiting_erasures,
                "busy": stands.busy,
            }
        )
    elif index is None:
        session.out.line("Nothing to carry: the vectors are kept with the entries.")
    else:
        waiting = counted(stands.waiting_erasures, "erasure")
        session.out.line(
            f"Index {index.number} in {index.place} is at position {index.position} of "
            f"{stands.end}; {waiting} still to be carried over."
        )


def _missing(session: Opened) -> None:
    with session.out.progress("embedding") as progress:
        added = session.memory.reindex_missing(progress=progress)
    if session.out.as_json:
        session.out.data({"added": added})
    else:
        session.out.line(f"{counted(added, 'vector')} added.")


def _drop_retired(session: Opened, *, unfinished: bool) -> None:
    dropped = session.memory.drop_retired_indexes(unfinished=unfinished)
    if session.out.as_json:
        session.out.data({"dropped": list(dropped)})
    else:
        numbers = ", ".join(map(str, dropped))
        session.out.line(f"Destroyed: index {numbers}." if dropped else "There is none to drop.")


def status(db: Db = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show how the memory stands."""
    with opened(db, config, as_json=as_json, read_only=True) as session:
        stands = session.memory.status()
        provider = provider_state(session.memory, session.settings)
        missing = missing_secrets(session.settings, stands.indexes)
        if as_json:
            told = {"provider": provider, "missing_secrets": missing}
            session.out.data({**_status_data(stands), **told})
            return
        session.out.table(
            session.settings.store.place,
            ("what", "how much"),
            [
                ("entries", stands.entries),
                ("events in the log", stands.events),
                ("versions found by words", stands.versions_by_words),
                ("versions found by vector", _or_unknown(stands.versions_by_vector)),
                ("recall by vectors", in_words(stands.dense)),
                *_carried(stands),
                *([("remote provider", provider)] if provider else []),
            ],
        )
        if stands.indexes:
            session.out.table(
                "Vector indexes",
                ("number", "state", "place", "space", "log position"),
                [
                    (one.number, one.state.value, one.place, one.embedding_tuple, _position(one))
                    for one in stands.indexes
                ],
            )
        for problem in missing:
            session.out.line(f"Missing: {problem}.", style="yellow")


def doctor(
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Look for damage also in a very long file, and in indexes."),
    ] = False,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation and the memory, and say what to do.  Exit status 1 on a finding."""
    try:
        with (
            opened(db, config, as_json=as_json) as session,
            session.out.progress("looking for damage"),
        ):
            findings = diagnose(session.memory, session.settings, deep=deep)
    except StoreError as error:
        settings = read_settings(db, config)
        if settings.store.backend != "postgres":
            raise
        findings = diagnose_without(settings, error)
    _show(Output(as_json=as_json), findings)
    if any(not finding.ok for finding in findings):
        raise typer.Exit(1)


def _show(out: Output, findings: list[Finding]) -> None:
    if out.as_json:
        out.data([asdict(finding) for finding in findings])
        return
    out.table(
        "Check-up",
        ("", "what", "found", "what to do"),
        [("ok" if one.ok else "!!", one.what, one.found, one.advice) for one in findings],
    )


def _carried(stands: Status) -> list[tuple[str, int]]:
    if not any(one.follows for one in stands.indexes):
        return []
    return [
        ("positions behind the log", stands.behind),
        ("vectors to be carried over", stands.waiting_vectors),
        ("erasures to be carried over", stands.waiting_erasures),
    ]


def _position(index: VectorIndex) -> int | str:
    # The store's own index is written with each event; on record is where building it ended.
    in_step = index.state is IndexState.ACTIVE and not index.follows
    return "in step" if in_step else index.position


def _or_unknown(count: int | None) -> int | str:
    return "unknown" if count is None else count


def _status_data(stands: Status) -> dict[str, Any]:
    return {
        "entries": stands.entries,
        "events": stands.events,
        "versions_by_words": stands.versions_by_words,
        "versions_by_vector": stands.versions_by_vector,
        "dense": stands.dense,
        "behind": stands.behind,
        "waiting_vectors": stands.waiting_vectors,
        "waiting_erasures": stands.waiting_erasures,
        "indexes": [_index_data(one) for one in stands.indexes],
    }


def _index_data(index: VectorIndex) -> dict[str, Any]:
    return {
        "number": index.number,
        "state": index.state.value,
        "place": index.place,
        "embedding_tuple": index.embedding_tuple.model_dump(mode="json"),
        "position": index.position,
    }
