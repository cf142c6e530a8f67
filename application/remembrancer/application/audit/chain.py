"""The chain of one stream's events: versions, positions and hashes."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.hash_chain import GENESIS

NO_GAPS = Invariant(
    name="versions-without-gaps",
    sentence="A stream's versions are 1, 2, 3 and so on, at growing positions.",
    source="design 4; adr/0006",
)
CHAIN = Invariant(
    name="hash-chain",
    sentence="Each event carries the hash of its predecessor in its stream, and its own is that "
    "of what is stored.",
    source="design 4; adr/0006",
)
INVARIANTS: Final = (NO_GAPS, CHAIN)


class Before:
    """The event before, in the same stream."""

    __slots__ = ("own", "position", "version")

    def __init__(self, own: bytes = GENESIS, version: int = 0, position: int = 0) -> None:
        self.own = own
        self.version = version
        self.position = position


class Link(NamedTuple):
    """One event as its chain sees it."""

    stream: bytes
    version: int
    hash: bytes
    """Computed from what is stored, not taken from the row."""
    position: int


def chained(events: Iterable[RawEvent], place: Place) -> Iterator[Link]:
    """Follow events by (stream id, version), and report where a chain is broken."""
    before, key_before = Before(), b""
    for event in events:
        position, key, version, topic, state, predecessor, own = event
        if key != key_before:
            before, key_before = Before(), key
            place.stream = key
        place.position, place.version = position, version
        try:
            digest = sha256(b"".join((predecessor, topic.encode(), b"\0", state))).digest()
        except (AttributeError, TypeError):
            digest = b""
        if (
            digest != own
            or predecessor != before.own
            or version != before.version + 1
            or position <= before.position
        ):
            report_broken(place, before, event, digest)
        before.own, before.version, before.position = own, version, position
        yield Link(key, version, digest, position)


def report_broken(place: Place, before: Before, event: RawEvent, digest: bytes) -> None:
    """Report what of an event doesn't follow the one before it, if anything.

    Without its time: what isn't as it was recorded can't be trusted to be earlier or later.
    """
    at, place.at = place.at, None
    _report(place, before, event, digest)
    place.at = at


def _report(place: Place, before: Before, event: RawEvent, digest: bytes) -> None:
    position, _, version, _, _, predecessor, own = event
    if version != before.version + 1:
        place.report(NO_GAPS, f"version {before.version + 1}", f"version {version}")
    if position <= before.position:
        place.report(NO_GAPS, f"a position after {before.position}", str(position))
    if predecessor != before.own:
        place.report(CHAIN, f"predecessor {_shown(before.own)}", _shown(predecessor))
    if digest != own:
        place.report(CHAIN, f"{_shown(digest)}, as stored bytes hash", _shown(own))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else f"no hash ({type(value).__name__})"
