"""The chain that makes a stream's alteration visible.

Each stored event is recorded with the hash of its predecessor in its stream; the first with 32
zero bytes.  The hash of an event is SHA-256 over the predecessor's hash, the topic, one zero byte
(which no topic holds) and the stored bytes (design section 4, adr/0006).
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, NoReturn
from uuid import UUID

from remembrancer.domain.errors import MalformedRecordError

GENESIS = bytes(32)
"""Predecessor of the first event of every stream."""


def event_hash(predecessor: bytes, topic: str, state: bytes) -> bytes:
    """Return the hash of a stored event, 32 bytes."""
    return hashlib.sha256(b"".join((predecessor, topic.encode(), b"\0", state))).digest()


class Link(NamedTuple):
    """One stored event as the chain sees it."""

    version: int
    topic: str
    state: bytes
    predecessor: bytes
    """Hash of the event before it in the stream, as recorded."""
    own: bytes
    """Its own hash, as recorded."""


def check_chain(stream_id: UUID, links: Iterable[Link], *, before: Link | None = None) -> None:
    """See that nothing of a stream was altered, taken out or put in.

    Args:
        stream_id: whose events these are.
        links: consecutive events of the stream, in order.
        before: the event just before the first of them; None where the stream begins.

    Raises:
        MalformedRecordError: the chain is broken, and at which version.
    """
    previous = GENESIS if before is None else before.own
    last = None if before is None else before.version
    for link in links:
        version, _, _, predecessor, own = link
        if last is not None and version != last + 1:
            _broken(stream_id, link, "the event before it is missing")
        if predecessor != previous:
            _broken(stream_id, link, "it doesn't follow the event before it")
        check_link(stream_id, link)
        previous, last = own, version


def check_next(stream_id: UUID, link: Link, *, head: Link | None) -> None:
    """See that an event may stand behind ``head``, the last of its stream, or begin it.

    Raises:
        MalformedRecordError: it may not.
    """
    if head is None and link.version != 1:
        _broken(stream_id, link, "the event before it is missing")
    check_chain(stream_id, [link], before=head)


def check_link(stream_id: UUID, link: Link) -> None:
    """See that one event is what was recorded, without its neighbours.

    Raises:
        MalformedRecordError: it isn't.
    """
    _, topic, state, predecessor, own = link
    try:
        if event_hash(predecessor, topic, state) == own:
            return
    except (AttributeError, TypeError):  # A damaged store may give nothing where something was.
        pass
    _broken(stream_id, link, "it isn't what was recorded")


def _broken(stream_id: UUID, link: Link, problem: str) -> NoReturn:
    raise MalformedRecordError(
        stream_id=stream_id,
        version=link.version,
        problem=f"the chain of hashes is broken: {problem}",
    )
