"""What was recorded, as tables for a person and as plain data for a program."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from remembrancer.composition.cli.explain import how_found, placed_data, rank_and_score, tuple_data
from remembrancer.composition.cli.output import Output, preview
from remembrancer.composition.cli.words import in_words
from remembrancer.domain.counted import counted
from remembrancer.domain.money import usd_text

if TYPE_CHECKING:
    from remembrancer.application.entry_life import VersionFacts
    from remembrancer.application.explain import (
        Change,
        Explanation,
        LeftOutExplained,
        PackExplained,
        SelectedExplained,
    )
    from remembrancer.application.explain_reservation import ReservationExplained
    from remembrancer.application.history import EntryHistory, VersionOfEntry
    from remembrancer.application.timeline import Timeline

_HOW_TO_READ = "rank and cosine by vector, rank and BM25 by words"


# -- A stage -------------------------------------------------------------------


def show_explanation(out: Output, found: "Explanation") -> None:
    """Show why a stage got what it got."""
    selection = found.selection
    out.line(
        f"{selection.session}/{selection.stage} of {selection.tenant}/{selection.owner}: "
        f"{len(found.entries)} of {counted(found.candidates, 'candidate')} selected for "
        f"{selection.principal}, {_time(found.selected_at)} UTC; {selection.kind.value}, "
        f"{how_found(selection)}"
    )
    out.table(
        f"Selected; {_HOW_TO_READ}",
        ("#", "entry", "how, what, and what has changed"),
        [
            (number, one.selected.entry_id, _told(*_place(one), *_version(one)))
            for number, one in enumerate(found.entries, start=1)
        ],
    )
    if found.left_out:
        out.shortened(
            f"Left out: {counted(selection.left_out_count, 'candidate')}",
            ("entry", "why, what, and what has changed"),
            [(one.entry_id, _told(*_why_out(one))) for one in found.left_out],
            selection.left_out_count,
        )
    asked = "; ".join(
        f"{name.replace('_', ' ')} {', '.join(of)}"
        for name, of in selection.filter.items()
        if (name, tuple(of)) != ("subject_count", ("0",))
    )
    out.line(f"Asked with: {asked}; at most {selection.limit}.", style="dim")
    if selection.embedding_tuple is not None:
        kept = {"sealed": "kept, sealed", "none": "not recorded"}.get(
            found.query_vector, found.query_vector
        )
        out.line(f"Space: {selection.embedding_tuple}; query vector {kept}.", style="dim")
    _show_packs(out, found.packs)


def _show_packs(out: Output, packs: Sequence["PackExplained"]) -> None:
    if not packs:
        out.line("No pack was assembled from it.")
        return
    out.table(
        "Packs",
        ("pack", "at (UTC)", "what"),
        [(one.pack.number, _time(one.at), _told(*_filling(one))) for one in packs],
    )
    omitted = [
        (one.pack.number, entry, in_words(why)) for one in packs for entry, why in one.pack.omitted
    ]
    if omitted:
        out.shortened("Not in a pack", ("pack", "id", "why"), omitted, len(omitted))


def _why_out(one: "LeftOutExplained") -> Iterable[str]:
    yield in_words(one.reason)
    yield _labels(one.facts)
    yield from _since(one.changes)


def _place(one: "SelectedExplained") -> Iterable[str]:
    ranks = one.selected.ranks
    yield f"score {one.selected.score:.5f}"
    yield f"vector {rank_and_score(ranks.dense_rank, ranks.dense_score)}"
    yield f"words {rank_and_score(ranks.sparse_rank, ranks.sparse_score)}"


def _version(one: "SelectedExplained") -> Iterable[str]:
    yield f"version {one.selected.version}"
    yield _labels(one.facts)
    yield from _since(one.changes)


def _filling(one: "PackExplained") -> Iterable[str]:
    yield f"{one.pack.tokens} of {counted(one.pack.token_budget, 'token')}"
    erased = "" if one.items_kept else " (erased)"
    yield f"{counted(len(one.host_items), 'item')} of the host{erased}"
    yield counted(len(one.entries), "entry", "entries")
    yield f"{len(one.pack.omitted)} omitted"
    yield f"digest {one.pack.digest}"


def explanation_data(found: "Explanation") -> dict[str, Any]:
    """Return why a stage got what it got as plain data."""
    selection = found.selection
    return {
        "tenant": selection.tenant,
        "owner": selection.owner,
        "principal": selection.principal,
        "session": selection.session,
        "stage": selection.stage,
        "kind": selection.kind.value,
        "selected_at": found.selected_at.isoformat(),
        "mode": selection.mode.value,
        "mode_reason": selection.mode_reason,
        "embedding_tuple": tuple_data(selection.embedding_tuple),
        "query_vector": found.query_vector,
        "limit": selection.limit,
        "filter": {name: list(of) for name, of in selection.filter.items()},
        "candidates": found.candidates,
        "entries": [
            {
                **placed_data(one.selected),
                "labels": _labels_data(one.facts),
                "changes": _changes_data(one.changes),
            }
            for one in found.entries
        ],
        "left_out": [
            {
                "entry_id": str(one.entry_id),
                "reason": one.reason.value,
                "labels": _labels_data(one.facts),
                "changes": _changes_data(one.changes),
            }
            for one in found.left_out
        ],
        "left_out_count": selection.left_out_count,
        "packs": [_pack_data(one) for one in found.packs],
    }


def _pack_data(one: "PackExplained") -> dict[str, Any]:
    pack = one.pack
    return {
        "number": pack.number,
        "at": one.at.isoformat(),
        "digest": pack.digest,
        "tokens": pack.tokens,
        "token_budget": pack.token_budget,
        "token_counter": pack.token_counter,
        "included": list(pack.included),
        "host_items": list(one.host_items),
        "host_items_kept": one.items_kept,
        "omitted": [{"id": omitted, "reason": reason} for omitted, reason in pack.omitted],
    }


# -- A reservation -------------------------------------------------------------


def show_reservation(out: Output, found: "ReservationExplained") -> None:
    """Show a reservation's life."""
    one = found.reservation
    out.table(
        f"Reservation {one.reservation_id} of {found.tenant}/{found.owner}, {one.kind.value}",
        ("at (UTC)", "state", "charged (USD)", ""),
        [
            (
                _time(step.at),
                step.state.value,
                usd_text(step.charged_quanta),
                step.detail,
            )
            for step in found.steps
        ],
    )
    day = found.day_quanta_before + one.reserved_quanta
    out.line(
        f"With it {one.day} (UTC) was at {usd_text(day)} of {usd_text(found.ceiling_quanta)} USD, "
        f"request {found.day_requests_before + 1} of {found.ceiling_requests}."
    )
    if found.is_overdue:
        out.line("Its lease has run out: the owner's next reservation makes it unknown.")
    for fed in found.fed:
        out.line(
            f"It brought {counted(fed.vectors, 'query vector')} into generation "
            f"{fed.generation} of the cache of {fed.surface}, {_time(fed.at)} UTC."
        )
    if not found.fed:
        what = (
            "for vectors of entries" if one.kind.value == "indexing" else "no vectors came of it"
        )
        out.line(f"It fed no cache: {what}.")
    out.line(f"{found.mechanism_version}, configuration {found.configuration_digest}", style="dim")


def reservation_data(found: "ReservationExplained") -> dict[str, Any]:
    """Return a reservation's life as plain data."""
    one = found.reservation
    return {
        "reservation_id": str(one.reservation_id),
        "tenant": found.tenant,
        "owner": found.owner,
        "kind": one.kind.value,
        "state": one.state.value,
        "is_overdue": found.is_overdue,
        "day": one.day,
        "reserved_quanta": one.reserved_quanta,
        "charged_quanta": one.charged_quanta,
        "charged_usd": usd_text(one.charged_quanta),
        "usage_tokens": one.usage_tokens,
        "unknown_reason": one.unknown_reason and one.unknown_reason.value,
        "admitted_at": one.admitted_at.isoformat(),
        "expires_at": one.expires_at.isoformat(),
        "day_quanta_before": found.day_quanta_before,
        "day_requests_before": found.day_requests_before,
        "ceiling_quanta": found.ceiling_quanta,
        "ceiling_requests": found.ceiling_requests,
        "mechanism_version": found.mechanism_version,
        "configuration_digest": found.configuration_digest,
        "embedding_tuple_digest": found.embedding_tuple_digest,
        "pricing_digest": found.pricing_digest,
        "request_digest": one.request_digest,
        "steps": [
            {**asdict(step), "at": step.at.isoformat(), "state": step.state.value}
            for step in found.steps
        ],
        "fed": [{**asdict(fed), "at": fed.at.isoformat()} for fed in found.fed],
    }


# -- An entry ------------------------------------------------------------------


def show_history(out: Output, found: "EntryHistory") -> None:
    """Show an entry's life, then its texts."""
    out.table(
        f"Entry {found.entry_id} of {found.tenant}/{found.owner}",
        ("version", "at (UTC)", "text", "what"),
        [
            (one.facts.version, _time(one.facts.at), one.text_state.value, _told(*_written(one)))
            for one in found.versions
        ],
    )
    if found.erased_at is not None:
        out.line(f"Erased {_time(found.erased_at)} UTC ({found.erased_reason}).", style="yellow")
    shown = [one for one in found.versions if one.text is not None]
    if shown:
        out.entries(
            "Texts",
            [(preview(one.text or ""), (f"version {one.facts.version}",)) for one in shown],
        )


def _written(one: "VersionOfEntry") -> Iterable[str]:
    yield _labels(one.facts)
    yield counted(one.facts.length, "byte")
    if one.facts.reason:
        yield f"because: {preview(one.stated_reason) or one.facts.reason}"
    yield f"digest {one.facts.digest}"


def history_data(found: "EntryHistory") -> dict[str, Any]:
    """Return an entry's life as plain data."""
    return {
        "entry_id": str(found.entry_id),
        "tenant": found.tenant,
        "owner": found.owner,
        "erased_at": found.erased_at and found.erased_at.isoformat(),
        "erased_reason": found.erased_reason,
        "versions": [
            {
                "version": one.facts.version,
                "at": one.facts.at.isoformat(),
                "digest": one.facts.digest,
                "length": one.facts.length,
                **_labels_data(one.facts),
                "reason": one.facts.reason,
                "stated_reason": one.stated_reason,
                "text_state": one.text_state.value,
                "permitted": one.permitted,
                "text": one.text,
            }
            for one in found.versions
        ],
    }


# -- What happened -------------------------------------------------------------


def show_timeline(out: Output, found: "Timeline", *, of: str) -> None:
    """Show events in order."""
    if not found.happenings:
        out.line(f"Nothing was recorded of {of} there.")
        return
    out.table(
        f"What happened: {of}",
        ("at (UTC)", "position", "what"),
        [(_time(one.at), one.position, _told(one.words, one.about)) for one in found.happenings],
    )
    if found.next_after is not None:
        out.line(f"There is more: --after {found.next_after}", style="dim")


def timeline_data(found: "Timeline") -> dict[str, Any]:
    """Return events in order as plain data."""
    return {
        "events": [
            {
                "position": one.position,
                "at": one.at.isoformat(),
                "owner": one.owner,
                "stream": str(one.stream_id),
                "version": one.version,
                "what": one.what,
                "about": one.about,
                "words": one.words,
            }
            for one in found.happenings
        ],
        "next_after": found.next_after,
    }


def _labels(facts: "VersionFacts | None") -> str:
    return "-" if facts is None else f"{facts.kind} in {facts.scope}, {facts.sensitivity.value}"


def _labels_data(facts: "VersionFacts | None") -> dict[str, Any]:
    if facts is None:
        return {"scope": None, "kind": None, "sensitivity": None}
    return {
        "scope": facts.scope,
        "kind": facts.kind,
        "sensitivity": facts.sensitivity.value,
    }


def _since(changes: Iterable["Change"]) -> Iterable[str]:
    return (f"{one.kind.value}: {one.detail}" for one in changes)


def _told(*facts: str) -> str:
    return " · ".join(facts)


def _changes_data(changes: Iterable["Change"]) -> list[dict[str, Any]]:
    return [
        {"kind": one.kind.value, "at": one.at and one.at.isoformat(), "detail": one.detail}
        for one in changes
    ]


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
