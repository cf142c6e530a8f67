"""The digest of a pack, put together again from log and vault: quickly, and exactly.

The quick way writes the same bytes without making the domain's objects.  It can only confirm: no
other text has the digest that was recorded.  Whatever it doesn't confirm, the domain's own
functions decide (a test proves that both come to the same).
"""

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from remembrancer.application.audit.natural_key import dashed
from remembrancer.application.audit.reading import State
from remembrancer.application.ports.audit_source import RawText
from remembrancer.application.quote import source_of
from remembrancer.domain.context_pack import (
    FORMAT_VERSION,
    PREFACE,
    SEPARATOR,
    ContextItem,
    pack_digest,
    reassemble,
)
from remembrancer.domain.errors import RefusedError
from remembrancer.domain.fences import Quotation, labels_shown, passage
from remembrancer.domain.l3_selection import Selection
from remembrancer.domain.recall import RecallKind, RecallMode

UNREADABLE: Final = "no digest: originals or items can't be read"

Spell = Callable[[Any], bytes]
"""Writes canonical JSON of all that is as usual."""

Parse = Callable[[bytes], Any]
"""Reads JSON.  Raises ValueError."""

_LABELS_KEPT: Final = 1_024


def quick_digest(
    selection: State,
    pack: State,
    items: bytes,
    texts: list[RawText],
    *,
    spell: Spell,
    parse: Parse = json.loads,
) -> str:
    """Return the digest of a pack of these texts, in committed order; ``spell`` writes JSON.

    Raises:
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError: not of any pack that
            was ever recorded.
    """
    included, label = pack.included, pack.label
    shown = set(included)
    given = sorted(parse(items), key=itemgetter("layer"))
    parts: list[str] = [one["text"] for one in given if one["id"] in shown]
    if texts:
        parts.append(PREFACE)
        # The last of what was included are the entries; their ids are as the log spells them.
        for entry_id, row in zip(included[-len(texts) :], texts, strict=True):
            _, version, scope, kind, level, _, metadata, text = row
            labels = _labels(scope, kind, level, metadata)
            parts.append(passage(text, entry_id, version, labels=labels, label=label))
    state = {
        "format_version": FORMAT_VERSION,
        "tenant": selection.tenant,
        "session": selection.session,
        "stage": selection.stage,
        "text": SEPARATOR.join(parts),
        "included": included,
        "omitted": pack.omitted,
        "token_budget": pack.token_budget,
        "tokens": pack.tokens,
        "token_counter": pack.token_counter,
    }
    return hashlib.sha256(spell(state)).hexdigest()


def exact_digest(selection: State, pack: State, items: bytes, texts: list[RawText]) -> str:
    """Return the digest by the domain's functions, or :data:`UNREADABLE`."""
    try:
        given: list[Any] = json.loads(items)
        text = reassemble(
            [ContextItem.parse(one) for one in given],
            list(map(_quotation, texts)),
            label=pack.label,
            included=pack.included,
        )
    except (AttributeError, RefusedError, TypeError, ValueError):
        return UNREADABLE
    return pack_digest(
        selection=_selection(selection),
        text=text,
        included=pack.included,
        omitted=pack.omitted,
        token_budget=pack.token_budget,
        tokens=pack.tokens,
        token_counter=pack.token_counter,
    )


@lru_cache(maxsize=_LABELS_KEPT)
def _labels(scope: str, kind: str, sensitivity: str, metadata: str) -> str:
    """Return a version's labels as its fence shows them; many versions have the same."""
    return labels_shown(scope, kind, sensitivity, source_of(json.loads(metadata)))


def _quotation(row: RawText) -> Quotation:
    entry_id, version, scope, kind, sensitivity, _, metadata, text = row
    return Quotation(
        entry_id=dashed(entry_id.hex()),
        version=version,
        scope=scope,
        kind=kind,
        sensitivity=sensitivity,
        source=source_of(json.loads(metadata)),
        text=text,
    )


def _selection(state: State) -> Selection:
    """Return as much of a selection as a pack's digest is made of."""
    return Selection(
        tenant=state.tenant,
        owner=state.owner,
        principal=state.principal,
        session=state.session,
        stage=state.stage,
        kind=RecallKind.DELIBERATE,
        entries=(),
        mode=RecallMode.LISTED,
        mode_reason="",
        left_out=(),
        left_out_count=0,
        limit=0,
        filter={},
        embedding_tuple=None,
        sealed_query_vector=None,
    )
