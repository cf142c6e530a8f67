"""Vectors as the rows of one table.  Imported by what asks or writes, as it imports numpy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from array import array

Rows = npt.NDArray[np.float32]
"""(n, D)."""


def rows_of(vectors: Sequence["array[float] | bytes"]) -> Rows:
    """Return a row for each of these vectors of one length, which may be mere bytes."""
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)


def directions(rows: Rows, lengths: Sequence[float]) -> Rows:
    """Return rows of length 1, which Qdrant compares by their products alone."""
    found: Rows = (rows / np.array(lengths)[:, np.newaxis]).astype(np.float32)
    return found
