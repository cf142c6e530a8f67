"""How far float32 scores can be from true ones: the bound that decides what has to be scored."""

import numpy as np
import numpy.typing as npt
import pytest

from remembrancer.adapters.qdrant.http_requests import DECIMALS
from remembrancer.adapters.qdrant.rows import Rows, directions
from remembrancer.adapters.qdrant.search import greatest_error
from remembrancer.domain.vector import cosine, norm

DIMENSIONS = [1, 4, 384, 4_096]
ROWS = 12
Wide = npt.NDArray[np.float64]


def hard(kind: str, dimensions: int) -> Rows:
    """Return vectors whose float32 sums go wrong, each kind in another way."""
    chance = np.random.default_rng(dimensions)
    wide: Wide = chance.standard_normal((ROWS, dimensions))
    match kind:
        case "rounded the same way":
            wide = np.full((ROWS, dimensions), 1.0) + np.arange(ROWS)[:, np.newaxis] * 1e-7
        case "a large one before many small":
            wide[:, 0] = 3_000.0
            wide[:, 1:] = np.abs(wide[:, 1:])
        case "far apart":
            wide *= 10.0 ** -chance.integers(0, 30, wide.shape)
        case "nearly equal":
            wide = wide[:1] + 1e-6 * wide
    return wide.astype(np.float32)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize(
    "kind",
    [
        "like any",
        "rounded the same way",
        "a large one before many small",
        "far apart",
        "nearly equal",
    ],
)
@pytest.mark.parametrize("decimals", [None, DECIMALS], ids=["as they are", "in decimals"])
def test_no_order_of_adding_leaves_the_bound(
    kind: str, dimensions: int, decimals: int | None
) -> None:
    rows = hard(kind, dimensions)
    plain = [row.tolist() for row in rows]
    lengths = [norm(row) for row in plain]
    kept = directions(rows, lengths)
    if decimals is not None:
        kept = kept.astype(np.float64).round(decimals).astype(np.float32)

    true = [
        cosine(plain[0], row, norms=lengths[0] * length)
        for row, length in zip(plain, lengths, strict=True)
    ]

    products = kept * kept[0]
    for order in (products, products[:, ::-1], np.sort(products, axis=1)):
        one_by_one = np.add.accumulate(order, axis=1, dtype=np.float32)[:, -1]
        off = np.abs(one_by_one.astype(np.float64) - true).max()
        assert off <= greatest_error(dimensions)


@pytest.mark.parametrize("dimensions", [384, 1_536])
def test_the_bound_is_not_so_wide_that_all_would_have_to_be_scored(dimensions: int) -> None:
    assert greatest_error(dimensions) < 1e-4
