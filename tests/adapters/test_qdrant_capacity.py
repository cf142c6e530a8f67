"""What a node carries: the table in the operators' document is the formula's."""

import re
from pathlib import Path

import pytest

from remembrancer.adapters.qdrant.capacity import capacity
from remembrancer.adapters.qdrant.options import Quantization

DOCUMENT = Path(__file__).parents[2] / "adapters/remembrancer/adapters/qdrant/README.md"
COUNTS = {"1 M": 10**6, "100 M": 10**8, "1 B": 10**9}
UNITS = {"MB": 1e6, "GB": 1e9, "TB": 1e12}
ROW = re.compile(r"^\| (1 M|100 M|1 B) \| ([\d,]+) \| (.+) \|$", re.MULTILINE)


def test_the_table_is_the_formulas() -> None:
    rows = ROW.findall(DOCUMENT.read_text())

    assert len(rows) == 6
    for count, dimensions, cells in rows:
        vectors, width = COUNTS[count], int(dimensions.replace(",", ""))
        none, scalar, binary = (
            capacity(vectors=vectors, dimensions=width, quantization=one)
            for one in ("none", "scalar", "binary")
        )
        expected = (
            none.memory_bytes,
            scalar.memory_bytes,
            binary.memory_bytes,
            scalar.disk_bytes,
        )
        for cell, true in zip(cells.split(" | "), expected, strict=True):
            number, unit = cell.split()
            assert float(number) * UNITS[unit] == pytest.approx(true, rel=0.005)


@pytest.mark.parametrize("quantization", ["scalar", "binary"])
def test_codes_take_less_memory_and_more_disk(quantization: Quantization) -> None:
    plain = capacity(vectors=1_000, dimensions=384)

    coded = capacity(vectors=1_000, dimensions=384, quantization=quantization)

    assert coded.memory_bytes < plain.memory_bytes
    assert coded.disk_bytes > plain.disk_bytes
