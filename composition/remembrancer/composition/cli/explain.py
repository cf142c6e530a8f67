"""Answers in full: ranks and scores, and why others were left out."""

from collections.abc import Iterable, Sequence
from typing import Any

from remembrancer.composition.cli.output import Output
from remembrancer.composition.cli.words import in_words
from remembrancer.domain.context_pack import ContextPack
from remembrancer.domain.counted import counted
from remembrancer.domain.l3_selection import SelectedEntry, Selection
from remembrancer.domain.recall import LeftOut, Ranks, Recalled, RecalledEntry

_COLUMNS = ("#", "entry", "score", "vector", "words")
_HOW_TO_READ = "rank and cosine by vector, rank and BM25 by words"


def recalled_data(found: Recalled) -> dict[str, Any]:
    """Return an answer as plain data."""
    return {
        "mode": found.mode.value,
        "mode_reason": found.mode_reason,
        "embedding_tuple": tuple_data(found.embedding_tuple),
        "entries": [
            {
                **placed_data(one),
                "text": one.text,
                "scope": one.scope,
                "kind": one.kind,
                "sensitivity": one.sensitivity.value,
                "subjects": list(one.subjects),
                "metadata": one.metadata,
                "recorded_at": one.recorded_at.isoformat(),
            }
            for one in found.entries
        ],
        "left_out": [_left_out_data(one) for one in found.left_out],
        "left_out_count": found.left_out_count,
    }


def pack_data(pack: ContextPack) -> dict[str, Any]:
    """Return a pack as plain data."""
    selection = pack.selection
    return {
        "session": pack.session,
        "stage": pack.stage,
        "number": pack.number,
        "selection_reused": pack.reused_selection,
        "digest": pack.digest,
        "tokens": pack.tokens,
        "token_budget": pack.token_budget,
        "token_counter": pack.token_counter,
        "included": list(pack.included),
        "omitted": [{"id": one, "reason": reason} for one, reason in pack.omitted],
        "differences": [{"id": one.id, "reason": one.reason} for one in pack.differences],
        "text": pack.text,
        "selection": {
            "mode": selection.mode.value,
            "mode_reason": selection.mode_reason,
            "embedding_tuple": tuple_data(selection.embedding_tuple),
            "entries": [placed_data(one) for one in selection.entries],
            "left_out": [_left_out_data(one) for one in selection.left_out],
            "left_out_count": selection.left_out_count,
        },
    }


def explain_recall(out: Output, found: Recalled) -> None:
    """Show how the entries were found and what was left out."""
    title = f"How they were found: {how_found(found)}; {_HOW_TO_READ}"
    out.table(title, _COLUMNS, _placed_rows(found.entries))
    _explain_left_out(out, found.left_out, found.left_out_count)


def explain_pack(out: Output, pack: ContextPack) -> None:
    """Show what was selected and how, and what isn't in the pack."""
    selection = pack.selection
    title = f"Selected: {how_found(selection)}; {_HOW_TO_READ}"
    out.table(title, _COLUMNS, _placed_rows(selection.entries))
    _explain_left_out(out, selection.left_out, selection.left_out_count)
    if pack.omitted:
        title = "Selected or given, but not in the pack"
        rows = [(one, in_words(reason)) for one, reason in pack.omitted]
        out.shortened(title, ("id", "why"), rows, len(rows))


def _explain_left_out(out: Output, left_out: Sequence[LeftOut], count: int) -> None:
    if left_out:
        rows = [(one.entry_id, in_words(one.reason)) for one in left_out]
        out.shortened(f"Left out: {counted(count, 'candidate')}", ("entry", "why"), rows, count)


def how_found(found: Recalled | Selection) -> str:
    """Return the mode, and why it isn't hybrid."""
    mode, reason = found.mode.value, found.mode_reason
    return f"{mode} ({in_words(reason)})" if reason else mode


def _placed_rows(entries: Iterable[RecalledEntry | SelectedEntry]) -> list[tuple[object, ...]]:
    return [
        (
            number,
            one.entry_id,
            f"{one.score:.5f}",
            rank_and_score(one.ranks.dense_rank, one.ranks.dense_score),
            rank_and_score(one.ranks.sparse_rank, one.ranks.sparse_score),
        )
        for number, one in enumerate(entries, start=1)
    ]


def placed_data(one: RecalledEntry | SelectedEntry) -> dict[str, Any]:
    """Return an entry's place in an answer as plain data."""
    return {
        "entry_id": str(one.entry_id),
        "version": one.version,
        "digest": one.digest,
        "score": one.score,
        "ranks": _ranks_data(one.ranks),
    }


def _ranks_data(ranks: Ranks) -> dict[str, Any]:
    return {
        "dense_rank": ranks.dense_rank,
        "dense_score": ranks.dense_score,
        "sparse_rank": ranks.sparse_rank,
        "sparse_score": ranks.sparse_score,
    }


def _left_out_data(one: LeftOut) -> dict[str, str]:
    return {"entry_id": str(one.entry_id), "reason": one.reason.value}


def tuple_data(embedding_tuple: Any) -> dict[str, Any] | None:
    """Return an embedding tuple, if there is one, as plain data."""
    return None if embedding_tuple is None else embedding_tuple.model_dump(mode="json")


def rank_and_score(rank: int | None, score: float | None) -> str:
    """Return a place in one list, as a cell of a table."""
    return "-" if rank is None or score is None else f"{rank}  {score:.4f}"
