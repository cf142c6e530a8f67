"""Packs, put together again from log and vault (seed L3; design 4.1), some at a time."""

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.pack_digests import (
    Parse,
    Spell,
    exact_digest,
    quick_digest,
)
from remembrancer.application.audit.reading import State
from remembrancer.application.build_pack import items_digest
from remembrancer.application.ports.audit_source import AuditSource, RawText
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.context_pack import FORMAT_VERSION
from remembrancer.domain.errors import StoreCorruptError, StoreForbiddenError

PACK = Invariant(
    name="pack-recomputes",
    sentence="A pack whose texts and items are kept has, put together again from log and vault, "
    "the digest that was recorded.",
    source="seed L3, determinism contract; design 4.1",
)
WHOLE_SESSIONS = Invariant(
    name="session-erased-as-a-whole",
    sentence="The host's items of a pack are kept with their session's key, and no longer than "
    "those of the selection's later packs.",
    source="design 4.1; adr/0003",
)
INVARIANTS: Final = (PACK, WHOLE_SESSIONS)

PACKS_AT_ONCE: Final = 24
"""Packs that are looked up together: a look-up costs as much as three texts do.  With more of them
Python's collector of cycles goes through all that waits, again and again."""
TOKENS_AT_ONCE: Final = 250_000
"""Tokens of such packs together: about a megabyte of text, however long one is."""

_NO_ITEMS: Final = b"[]"
_IMPOSSIBLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(slots=True)
class PackCounts:
    """How many packs were put together again, and how many couldn't be."""

    recomputed: int = 0
    erased: int = 0
    forbidden: int = 0
    unknown_format: int = 0


class _Waiting(NamedTuple):
    """A pack to be looked up."""

    place: Place
    selection: State
    pack: State
    quoted: list[Any]
    """Of the selected entries those in the pack."""
    wanted: list[tuple[bytes, int]]
    """Their versions, as the vault knows them."""
    number: tuple[bytes, int]
    """Of which selection, and which pack of it."""


class PackCheck:
    """Puts packs together as a replay does, but for permission: the auditor shows no text."""

    def __init__(
        self,
        source: AuditSource,
        spell: Spell = canonical_json,
        parse: Parse = json.loads,
    ) -> None:
        self._source = source
        self._spell = spell
        self._parse = parse
        self.counts = PackCounts()
        self._waiting: list[_Waiting] = []
        self._tokens = 0
        self._kept_of = b""
        """The last selection of which a pack's items were there; its packs come in order."""

    def __call__(self, place: Place, selection: State, pack: State) -> None:
        """Check one pack of ``selection``, now or soon; both were read from the log."""
        if pack.format_version != FORMAT_VERSION:
            self.counts.unknown_format += 1
            return
        shown = set(pack.included)
        quoted = [one for one in selection.entries if one.entry_id in shown]
        wanted = [(bytes.fromhex(one.entry_id.replace("-", "")), one.version) for one in quoted]
        number = (place.stream, pack.number)
        self._waiting.append(_Waiting(place.copy(), selection, pack, quoted, wanted, number))
        self._tokens += pack.tokens
        if len(self._waiting) >= PACKS_AT_ONCE or self._tokens >= TOKENS_AT_ONCE:
            self.finish()

    def finish(self) -> int:
        """Check the packs that still wait; return how many were put together again so far."""
        waiting, self._waiting, self._tokens = self._waiting, [], 0
        self._look_up(waiting)
        return self.counts.recomputed

    def _look_up(self, waiting: Sequence[_Waiting]) -> None:
        wanted = [key for one in waiting for key in one.wanted]
        try:
            texts = {row[:2]: row for row in self._source.texts(wanted)} if wanted else {}
            items = self._source.items([one.number for one in waiting]) if waiting else {}
        except (StoreForbiddenError, StoreCorruptError) as error:
            if len(waiting) > 1:
                for one in waiting:
                    self._look_up([one])
            elif isinstance(error, StoreForbiddenError):
                self.counts.forbidden += 1
            else:
                waiting[0].place.report(PACK, "readable originals and items", "damaged ones")
            return
        for one in waiting:
            try:
                self._check(one, texts, *items[one.number])
            except _IMPOSSIBLE:
                one.place.report(PACK, "originals and items as we write them", "others")

    def _check(
        self,
        one: _Waiting,
        found: dict[tuple[bytes, int], RawText],
        key: bytes | None,
        items: bytes | None,
    ) -> None:
        place, pack = one.place, one.pack
        self._check_whole(place, key, items)
        if items is None or key is None:
            if len(one.quoted) != len(pack.included):
                self.counts.erased += 1
                return
            items = _NO_ITEMS
        elif not hmac.compare_digest(items_digest(key, items), pack.items_digest):
            place.report(PACK, "the host's items of the recorded digest", "others")
            self.counts.erased += 1
            return
        try:
            texts = [found[version] for version in one.wanted]
        except KeyError:
            self.counts.erased += 1
            return
        # That each text is that of its digest is proved once, where the vault is read.
        if [row[5].hex() for row in texts] != [selected.digest for selected in one.quoted]:
            place.report(PACK, "the texts that were selected", "another text")
            return
        self.counts.recomputed += 1
        if not self._is_confirmed(one, items, texts):
            digest = exact_digest(one.selection, pack, items, texts)
            if digest != pack.digest:
                place.report(PACK, str(pack.digest), digest)

    def _check_whole(self, place: Place, key: bytes | None, items: bytes | None) -> None:
        """Find what is left, or gone, of a session though erasing takes all of it.

        A pack that is assembled after that has a new key: items of earlier packs may be gone.
        """
        if items is not None:
            self._kept_of = place.stream
            if key is None:
                place.report(WHOLE_SESSIONS, "the key of a session whose items are there", "none")
        elif self._kept_of == place.stream:
            place.report(
                WHOLE_SESSIONS, "the host's items, as an earlier pack's are there", "none"
            )

    def _is_confirmed(self, one: _Waiting, items: bytes, texts: list[RawText]) -> bool:
        """Say whether the quick way comes to the recorded digest; if not, that says nothing."""
        try:
            digest = quick_digest(
                one.selection, one.pack, items, texts, spell=self._spell, parse=self._parse
            )
        except _IMPOSSIBLE:
            return False
        return bool(digest == one.pack.digest)
