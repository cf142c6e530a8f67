"""Packs, put together again from log and vault (seed L3; design 4.1)."""

import hmac
import json
from dataclasses import dataclass
from typing import Any, Final

from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.natural_key import dashed
from remembrancer.application.audit.reading import State
from remembrancer.application.build_pack import items_digest
from remembrancer.application.ports.audit_source import AuditSource, RawText
from remembrancer.application.quote import source_of
from remembrancer.domain.context_pack import (
    FORMAT_VERSION,
    ContextItem,
    Quotation,
    pack_digest,
    reassemble,
)
from remembrancer.domain.errors import RefusedError, StoreCorruptError, StoreForbiddenError
from remembrancer.domain.fences import Provenance
from remembrancer.domain.l3_selection import Selection
from remembrancer.domain.recall import RecallKind, RecallMode

PACK = Invariant(
    name="pack-recomputes",
    sentence="A pack whose texts and items are kept has, put together again from log and vault, "
    "the digest that was recorded.",
    source="seed L3, determinism contract; design 4.1",
)
INVARIANTS: Final = (PACK,)

_NO_ITEMS: Final = b"[]"


@dataclass(slots=True)
class PackCounts:
    """How many packs were put together again, and how many couldn't be."""

    recomputed: int = 0
    erased: int = 0
    forbidden: int = 0
    unknown_format: int = 0


class PackCheck:
    """Puts packs together as a replay does, but for permission: the auditor shows no text."""

    def __init__(self, source: AuditSource) -> None:
        self._source = source
        self.counts = PackCounts()

    def __call__(self, place: Place, selection: State, pack: State) -> None:
        """Check one pack of ``selection``; both are states that were read from the log."""
        if pack.format_version != FORMAT_VERSION:
            self.counts.unknown_format += 1
            return
        try:
            self._check(place, selection, pack)
        except StoreForbiddenError:
            self.counts.forbidden += 1
        except StoreCorruptError:
            place.report(PACK, "readable originals and items", "damaged ones")

    def _check(self, place: Place, selection: State, pack: State) -> None:
        shown = set(pack.included)
        quoted = [one for one in selection.entries if one.entry_id in shown]
        wanted = [(bytes.fromhex(one.entry_id.replace("-", "")), one.version) for one in quoted]
        found = {row[:2]: row for row in self._source.texts(wanted)} if wanted else {}
        items = self._items(place, pack, none_included=len(quoted) == len(pack.included))
        if items is None or len(found) < len(wanted):
            self.counts.erased += 1
            return
        texts = [found[key] for key in wanted]
        # That each text is that of its digest is proved once, where the vault is read.
        if any(row[5].hex() != one.digest for row, one in zip(texts, quoted, strict=True)):
            place.report(PACK, "the texts that were selected", "another text")
            return
        self.counts.recomputed += 1
        digest = _recomputed(selection, pack, items, texts)
        if digest != pack.digest:
            place.report(PACK, str(pack.digest), digest)

    def _items(self, place: Place, pack: State, *, none_included: bool) -> bytes | None:
        key, items = self._source.session(place.stream, number=pack.number)
        if items is None or key is None:
            return _NO_ITEMS if none_included else None
        if not hmac.compare_digest(items_digest(key, items), pack.items_digest):
            place.report(PACK, "the host's items of the recorded digest", "others")
            return None
        return items


def _recomputed(selection: State, pack: State, items: bytes, texts: list[RawText]) -> str:
    """Return the digest of the pack's text, put together anew."""
    try:
        given: list[Any] = json.loads(items)
        text = reassemble(
            [ContextItem.parse(one) for one in given],
            list(map(_quotation, texts)),
            label=pack.label,
            included=pack.included,
        )
    except (AttributeError, RefusedError, TypeError, ValueError):
        return "no digest: originals or items can't be read"
    return pack_digest(
        selection=_selection(selection),
        text=text,
        included=pack.included,
        omitted=pack.omitted,
        token_budget=pack.token_budget,
        tokens=pack.tokens,
        token_counter=pack.token_counter,
    )


def _quotation(row: RawText) -> Quotation:
    entry_id, version, scope, kind, sensitivity, _, metadata, text = row
    return Quotation(
        provenance=Provenance(
            entry_id=dashed(entry_id.hex()),
            version=version,
            scope=scope,
            kind=kind,
            sensitivity=sensitivity,
            source=source_of(json.loads(metadata)),
        ),
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
