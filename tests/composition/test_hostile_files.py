"""Exports and seals made to fill the memory of whoever reads them: refused by their bytes."""

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.application.exported import exported, live, restored, store_of
from tests.application.house import an_entry
from tests.application.test_export_scale import peak_of

from remembrancer.application.audit.seal import read_seal
from remembrancer.application.export_bounds import is_within_bounds
from remembrancer.application.export_format import Header, OwnerLine
from remembrancer.composition.export_file import lines_of, seal_lines_of
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.export_errors import DamagedExportError, UnreadableExportError

MIB = 2**20
OWNER = OwnerLine(number=1, tenant="a", owner="b").data()
HEADER = Header(
    tenant=None, owner=None, stream=None, holds_originals=True, events=0, originals=0, sessions=0
).data()
SEAL = canonical_json({"format": "remembrancer-seal", "format_version": 1}) + b"\n"


def packed(folder: Path, pieces: Iterable[bytes]) -> Path:
    """Write a packed file."""
    file = folder / "hostile.gz"
    with gzip.open(file, "wb", compresslevel=1) as out:
        for piece in pieces:
            out.write(piece)
    return file


def owners() -> Iterator[bytes]:
    """Give owners of whom nothing follows."""
    for number in range(1, 100_001):
        yield OwnerLine(number=number, tenant="a", owner=f"{number:0200}").data()


HOSTILE: dict[str, Iterable[bytes]] = {
    "no header": [b"{" * MIB] * 32,
    "a long name": [HEADER, b'{"line":"owner","number":1,"owner":"', *[b"a" * MIB] * 32, b'"}\n'],
    "owners": [HEADER, *owners()],
    "items": [HEADER, OWNER, b'{"items":[', *[b'[1,""],' * 150_000] * 8, b'[1,""]]}\n'],
    "objects in an original": [HEADER, OWNER, b'{"digest":[', *[b"{}," * 350_000] * 8, b"{}]}\n"],
    "keys in an original": [HEADER, OWNER, b'{"digest":{', *[b'"":""' * 170_000] * 8, b"}}\n"],
    "lists in an event": [HEADER, OWNER, b'{"hash":[', *[b"[]," * 350_000] * 8, b"[]]}\n"],
    "lists in a state": [HEADER, OWNER, b'{"hash":"', *[b"[]," * 350_000] * 8, b'[]"}\n'],
    "a string that never ends": [HEADER, OWNER, b'{"hash":"', *[b'\\"' * (MIB // 2)] * 8],
    "numbers in a row": [HEADER, OWNER, b'{"digest":', *[b"1 " * (MIB // 2)] * 8, b"}\n"],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_export_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    file = packed(tmp_path, HOSTILE[name])

    def refuse() -> None:
        with (
            store_of("memory", tmp_path / "empty") as house,
            pytest.raises((DamagedExportError, UnreadableExportError)),
        ):
            house.container.restore()(lambda: lines_of(file))

    assert peak_of(refuse) < 32 * MIB


@pytest.mark.parametrize(
    "line",
    [
        b'{"items":[' + b'[1,""],' * 1_000 + b'[1,""]]}\n',
        b'{"digest":"' + b"a" * (6 * MIB + 1) + b'"}\n',
        b'{"digest":[' + b"{}," * 3_000 + b"{}]}\n",
        b'{"hash":[' + b"[]," * 3_000 + b"[]]}\n",
        b'{"hash":"' + b"[]," * 3_000_000 + b'"}\n',
        b'{"line":"owner","number":1,"owner":"' + b"a" * 5_000 + b'"}\n',
    ],
    ids=range(6),
)
def test_what_is_beyond_its_bounds_is_not_parsed(line: bytes) -> None:
    assert not is_within_bounds(line, packs=9)


def test_what_the_product_keeps_at_most_is_within_bounds(tmp_path: Path) -> None:
    with store_of("memory", tmp_path / "lived") as lived:
        live(lived)
        keys = {f"{number:0>250}": '",[' * 20_000 for number in range(64)}
        subjects = [f'{number}"' * 60 for number in range(64)]
        lived.memory.remember(an_entry("\x01" * MIB, metadata=keys, subjects=subjects))
        lines = exported(lived)

    with store_of("memory", tmp_path / "empty") as empty:
        assert restored(empty, lines).holds_originals


# -- Seals -------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        [b"\0" * MIB] * 32,
        [SEAL, *[b"[" * MIB] * 32],
        [SEAL, b"[[]", *[b",[]" * 350_000] * 32, b"]\n"],
        [SEAL, b'{"statement":"', *[b"a" * MIB] * 32, b'"}\n'],
    ],
    ids=["zeros", "nested", "lists", "statement"],
)
def test_a_hostile_seal_is_refused_in_little_memory(tmp_path: Path, pieces: list[bytes]) -> None:
    file = packed(tmp_path, pieces)

    def refuse() -> None:
        with seal_lines_of(file) as lines, pytest.raises(InvalidInputError) as refused:
            read_seal(lines)
        assert refused.value.field == "seal"

    assert peak_of(refuse) < 4 * MIB


@pytest.mark.parametrize("time", ["2020-01-01", "0001-01-01T00:00:00+14:00", "tomorrow"])
def test_a_seal_of_no_time_is_said_to_be_none(time: str) -> None:
    statement = {"events": 0, "format_version": 1, "position": 0, "root": "", "streams": 0}
    end = {"statement": statement | {"sealed_at": time}, "signature": "", "public_key": ""}

    with pytest.raises(InvalidInputError) as refused:
        read_seal([SEAL, canonical_json(end) + b"\n"])

    assert refused.value.field == "seal"


def test_a_seal_that_is_cut_off_is_said_to_be_one(tmp_path: Path) -> None:
    file = packed(tmp_path, [SEAL * 1_000])
    file.write_bytes(file.read_bytes()[:-9])

    with seal_lines_of(file) as lines, pytest.raises(InvalidInputError) as refused:
        list(lines)

    assert refused.value.field == "seal"
