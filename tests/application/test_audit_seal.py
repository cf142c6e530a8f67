"""Seals: what is signed, and which later states don't extend it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.application.recorded_log import Lives, altered, rechained

from remembrancer.adapters.sealing.signer import Ed25519SignatureCheck, Ed25519Signer
from remembrancer.application.audit.finding import AuditReport
from remembrancer.application.audit.merkle import EMPTY_ROOT, MerkleRoot
from remembrancer.application.audit.seal import write_seal
from remembrancer.application.audit.verify_seal import VerifySeal
from remembrancer.application.ports.audit_source import LogExtent, RawEvent
from remembrancer.contracts.signer import KNOWN_KEY, KNOWN_PUBLIC_KEY
from remembrancer.domain.errors import InvalidInputError

AT = datetime(2030, 1, 2, tzinfo=UTC)
Rows = list[RawEvent]


class Rowed:
    """As much of a source as a seal needs, over rows at hand."""

    name = "rows"

    def __init__(self, rows: Rows) -> None:
        self._rows = sorted(rows, key=lambda row: (row[1], row[2]))

    def extent(self) -> LogExtent:
        count = len(self._rows)
        return LogExtent(events=count, first=1, last=count, given=None, gapless=False)

    def streams(self) -> Iterator[RawEvent]:
        return iter(self._rows)

    def changed_meanwhile(self) -> bool:
        return False


def sealed(rows: Rows) -> list[bytes]:
    lines: list[bytes] = []
    source: Any = Rowed(rows)
    _, report = write_seal(source, Ed25519Signer(key=KNOWN_KEY), lines.append, at=AT)
    assert report.is_green
    return lines


def verified(rows: Rows, lines: list[bytes], public_key: bytes = KNOWN_PUBLIC_KEY) -> AuditReport:
    def opened() -> AbstractContextManager[Iterable[bytes]]:
        return nullcontext(iter(lines))

    source: Any = Rowed(rows)
    check = VerifySeal(source=source, signatures=Ed25519SignatureCheck())
    return check(opened, public_key=public_key)


@pytest.fixture
def rows() -> Rows:
    return Lives(3).live(80)


# -- The tree ----------------------------------------------------------------


def _by_definition(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it stands there."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    left, right = _by_definition(leaves[:half]), _by_definition(leaves[half:])
    return sha256(b"\x01" + left + right).digest()


@given(leaves=st.lists(st.binary(max_size=4), max_size=40))
def test_the_root_is_as_the_standard_defines_it(leaves: list[bytes]) -> None:
    tree = MerkleRoot()
    for leaf in leaves:
        tree.add(leaf)

    assert tree.root() == _by_definition(leaves)


# -- What extends a seal -----------------------------------------------------


def test_a_log_extends_its_own_seal(rows: Rows) -> None:
    report = verified(rows, sealed(rows))

    assert report.is_green
    assert report.counts == {
        "sealed events": len(rows),
        "sealed streams": len({row[1] for row in rows}),
    }


@pytest.mark.parametrize("seed", range(10))
def test_whatever_comes_later_extends_it(seed: int) -> None:
    """New streams before, between and after those that were sealed, and longer ones."""
    rows = Lives(seed).live(300)

    for end in (0, 1, 20, len(rows)):
        assert verified(rows, sealed(rows[:end])).is_green


def test_a_log_with_new_positions_extends_it(rows: Rows) -> None:
    """As after a restore: positions with holes become 1, 2, 3 and so on."""
    with_holes = [(row[0] * 7, *row[1:]) for row in rows]

    assert verified(rows, sealed(with_holes)).is_green


def test_the_same_log_gives_the_same_seal(rows: Rows) -> None:
    assert sealed(rows) == sealed(rows)


# -- What doesn't ------------------------------------------------------------


def test_a_lost_tail_is_found(rows: Rows) -> None:
    """The log is sound in itself: only the seal knows that there was more."""
    lines = sealed(rows)
    lost = rows[-1]

    report = verified(rows[:-1], lines)

    first = report.findings[0]
    assert first.invariant == "extends-the-seal"
    assert first.stream is not None
    assert (first.stream.bytes, first.version) == (lost[1], lost[2])


def test_a_lost_stream_is_found(rows: Rows) -> None:
    gone = rows[0][1]

    report = verified([row for row in rows if row[1] != gone], sealed(rows))

    first = report.findings[0]
    assert first.stream is not None
    assert (first.stream.bytes, first.version, first.found) == (gone, 1, "no such stream")


def test_an_event_that_was_rewritten_is_found(rows: Rows) -> None:
    """With all hashes made to fit, so that the chain shows nothing."""
    [rewritten] = rechained(altered(rows[:1]))
    other = rechained([rewritten, *rows[1:]])

    report = verified(other, sealed(rows))

    streams = {one.stream.bytes for one in report.findings if one.stream is not None}
    assert streams == {rows[0][1]}
    assert {one.invariant for one in report.findings} == {"extends-the-seal"}


def test_an_event_that_was_altered_is_named_by_its_version(rows: Rows) -> None:
    report = verified(altered(rows), sealed(rows))

    first = report.findings[0]
    assert first.stream is not None
    assert (first.invariant, first.stream.bytes, first.version) == ("hash-chain", rows[0][1], 1)


def test_every_stream_that_does_not_extend_it_is_named_in_order(rows: Rows) -> None:
    report = verified([], sealed(rows))

    named = [one.stream.bytes for one in report.findings if one.stream is not None]
    assert named == sorted({row[1] for row in rows})


# -- Seals that aren't genuine -----------------------------------------------


def _without_a_stream(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def _shorter(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1].replace(b'"events":', b'"events":1')]


def _out_of_order(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


@pytest.mark.parametrize("forge", [_without_a_stream, _shorter, _out_of_order])
def test_a_forged_seal_is_not_genuine(
    rows: Rows, forge: Callable[[list[bytes]], list[bytes]]
) -> None:
    report = verified(rows, forge(sealed(rows)))

    assert {one.invariant for one in report.findings} == {"seal-is-genuine"}


def test_somebody_elses_seal_is_not_genuine(rows: Rows) -> None:
    """Also when it names its own key: the verifier brings the one to be trusted."""
    other = Ed25519Signer(key=bytes(32)).public_key()

    report = verified(rows, sealed(rows), public_key=other)

    assert [one.invariant for one in report.findings] == ["seal-is-genuine"]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"{}\n"],
        [b'{"format":"remembrancer-seal","format_version":2}\n'],
        [b'{"format":"remembrancer-seal","format_version":1}\n'],
        [b'{"format":"remembrancer-seal","format_version":1}\n', b"[1]\n"],
        [b'{"format":"remembrancer-seal","format_version":1}\n', b'["",1,"",1]\n'],
        [b'{"format":"remembrancer-seal","format_version":1}\n', b"{}\n"],
        [b'{"format":"remembrancer-seal","format_version":1}\n', b"{\n", b"{\n"],
        [b'{"format":"remembrancer-seal","format_version":1}\n', b"\xff\n"],
    ],
)
def test_what_is_no_seal_is_refused(rows: Rows, lines: list[bytes]) -> None:
    with pytest.raises(InvalidInputError):
        verified(rows, lines)


def test_a_log_with_a_broken_chain_is_not_sealed(rows: Rows) -> None:
    lines: list[bytes] = []
    source: Any = Rowed(altered(rows))

    _, report = write_seal(source, Ed25519Signer(key=KNOWN_KEY), lines.append, at=AT)

    assert [one.invariant for one in report.findings] == ["hash-chain"]
    with pytest.raises(InvalidInputError, match="no statement"):
        verified(rows, lines)
