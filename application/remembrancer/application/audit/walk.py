"""One reading of the log, stream by stream: chain, order, spelling, and the rules of each kind.

Events come by (stream id, version).  One stream is in hand at a time, so memory doesn't depend on
how many there are.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, Protocol

from remembrancer.application.audit.chain import Before, report_broken
from remembrancer.application.audit.entries import CORRECTED, ERASED, REMEMBERED, EntryRules
from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Findings, Invariant, Place, uuid_of
from remembrancer.application.audit.generations import (
    BOUND,
    PREPARED,
    REPLACED,
    WITHDRAWN,
    CacheRules,
)
from remembrancer.application.audit.reading import State, StateReader
from remembrancer.application.audit.reservations import (
    ADMITTED,
    BECAME_UNKNOWN,
    RECONCILIATION,
    SETTLED,
    LedgerRules,
)
from remembrancer.application.audit.selections import (
    ENTRIES_SELECTED,
    PACK_ASSEMBLED,
    SelectionRules,
)
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.hash_chain import GENESIS
from remembrancer.domain.l3_selection import L3Selection

KNOWN_EVENTS = Invariant(
    name="known-events",
    sentence="Every event is one that this release knows.",
    source="design 4; adr/0006",
)
CANONICAL = Invariant(
    name="canonical-events",
    sentence="Every state is the canonical JSON of exactly its event's fields, of a kind that "
    "some decision records.",
    source="design 4; adr/0006",
)
STREAM_IDS = Invariant(
    name="stream-of-its-key",
    sentence="A stream's id is that of its natural key, and all its events are of one kind.",
    source="design 4",
)
FORWARD = Invariant(
    name="time-goes-forward",
    sentence="Times never decrease within a stream.",
    source="design 4.2, rule 6",
)
INVARIANTS: Final = (KNOWN_EVENTS, CANONICAL, STREAM_IDS, FORWARD)

IMPOSSIBLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What taking in a state of the right fields may raise: no decision recorded such values."""


class Rules(Protocol):
    """What folds one stream."""

    def begin(self, topic: str, state: State) -> bytes | None:
        """Take in the first event; return the id its stream must have, None if it begins none."""
        ...

    def take(self, topic: str, state: State) -> None:
        """Take in a later event."""
        ...

    def finish(self) -> None:
        """The stream has ended."""
        ...


_KINDS: Final[dict[str, Callable[[Place, Facts], Rules]]] = {
    **dict.fromkeys((REMEMBERED, CORRECTED, ERASED), EntryRules),
    **dict.fromkeys((ENTRIES_SELECTED, PACK_ASSEMBLED), SelectionRules),
    **dict.fromkeys((ADMITTED, SETTLED, BECAME_UNKNOWN, RECONCILIATION), LedgerRules),
    **dict.fromkeys((BOUND, PREPARED, REPLACED, WITHDRAWN), CacheRules),
}
"""Whose rules an event is judged by."""
_HASHED: Final = {topic: topic.encode() + b"\0" for topic in _KINDS}
"""How a known topic begins what is hashed."""
_AGGREGATES: Final = {
    REMEMBERED: MemoryEntry.TOPIC,
    ENTRIES_SELECTED: L3Selection.TOPIC,
    BOUND: CacheContext.TOPIC,
}
"""What the events that begin an aggregate must say they begin."""
NOT_UNDERSTOOD_MAX: Final = 100_000
_PROGRESS_EVERY: Final = 8_192


class Walk:
    """Reads events by (stream id, version) and reports what isn't as it must be."""

    def __init__(self, findings: Findings, facts: Facts, reader: StateReader) -> None:
        self.place = Place(findings)
        self.events = 0
        self.streams = 0
        self.asked = 0
        """Streams of the tenant and owner that findings are wanted of, where not of all."""
        self.not_understood: set[bytes] = set()
        """Streams of which an event couldn't be taken in: nothing more is concluded from them."""
        self.on_progress: Callable[[int], None] = _nobody_watches
        """Called now and then with the number of events that were read."""
        self._facts = facts
        self._read = reader.read
        self._scope = None if findings.scope.is_whole else findings.scope

    def read(self, events: Iterable[RawEvent]) -> int:
        """Read all of ``events`` and return how many there were; what they raise passes."""
        place, count = self.place, self.events
        # Of the stream in hand; None where nothing more is concluded from it.
        rules: Rules | None = None
        key_before: bytes | None = None
        version_before, position_before, own_before = 0, 0, GENESIS
        for event in events:
            position, key, version, topic, state, predecessor, own = event
            is_first = key != key_before
            if is_first:
                if rules is not None:
                    rules.finish()
                    rules = None
                self.streams += 1
                place.stream = key
                place.at = place.tenant = place.owner = None
                key_before, version_before, position_before, own_before = key, 0, 0, GENESIS
            place.position, place.version = position, version
            try:
                hashed = _HASHED.get(topic) or topic.encode() + b"\0"
                digest = sha256(b"".join((predecessor, hashed, state))).digest()
            except (AttributeError, TypeError):
                digest = b""
            if (
                digest != own
                or predecessor != own_before
                or version != version_before + 1
                or position <= position_before
            ):
                before = Before(own_before, version_before, position_before)
                report_broken(place, before, event, digest)
            own_before, version_before, position_before = own, version, position
            count += 1
            if not count % _PROGRESS_EVERY:
                self.on_progress(count)
            if is_first or rules is not None:
                rules = self._judged(rules, topic, state)
        if rules is not None:
            rules.finish()
        self.events = count
        self.on_progress(count)
        return count

    def _judged(self, rules: Rules | None, topic: str, data: bytes) -> Rules | None:
        """Judge one event; return whose rules go on, None if nothing more can be concluded.

        Without ``rules`` it is its stream's first.
        """
        place = self.place
        kind = _KINDS.get(topic)
        if kind is None:
            place.report(KNOWN_EVENTS, "a known event", repr(topic)[:200])
            return self._leave()
        state, problem = self._read(topic, data)
        if problem:
            place.report(CANONICAL, "the state of its event", problem)
            return self._leave()
        at, before = state.timestamp, place.at
        if before is not None and at < before:
            place.report(FORWARD, f"{before.isoformat()} or later", at.isoformat())
        place.at = at
        try:
            if rules is not None:
                rules.take(topic, state)
                return rules
            rules = kind(place, self._facts)
            expected = rules.begin(topic, state)
            if expected is None:
                return self._leave()
            if expected != place.stream:
                place.report(STREAM_IDS, str(uuid_of(expected)), str(uuid_of(place.stream)))
            begun = _AGGREGATES.get(topic)
            if begun is not None and state.originator_topic != begun:
                place.report(STREAM_IDS, begun, str(state.originator_topic)[:200])
            if self._scope is not None and self._scope.wants_stream(place.tenant, place.owner):
                self.asked += 1
        except IMPOSSIBLE:
            place.report(CANONICAL, "values that a decision records", "others")
            return self._leave()
        return rules

    def _leave(self) -> Rules | None:
        """Conclude nothing more from the stream in hand: return no rules."""
        if len(self.not_understood) < NOT_UNDERSTOOD_MAX:
            self.not_understood.add(self.place.stream)
        return None


def _nobody_watches(_: int) -> None:
    pass
