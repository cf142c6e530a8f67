"""The arrays of a resident copy: one position a row, spare room at the end.

Positions below ``used`` never change their meaning, so a reader may use them while more are added
behind.  A retired row keeps its place and is marked with the retirement that took it, so that an
older snapshot, which still has it, can be answered as well.

Imported at the first query only, as it imports numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import CodedRows, Codes, Floats, Singles

KEY_BYTES = 16
HERE = np.iinfo(np.int64).max
"""Stands in ``gone`` of a row that isn't retired."""
_SPARE_ROWS = 1024


@dataclass(frozen=True, slots=True)
class ResidentRows:
    """Parallel arrays; ``used`` of them, told by whoever holds this, have a meaning."""

    codes: Codes
    scales: Singles
    residuals: Floats
    ids: npt.NDArray[np.int64]
    gone: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint8]

    @classmethod
    def with_room_for(cls, rows: int, dimensions: int) -> Self:
        """Return arrays for ``rows`` and a quarter more; untouched memory costs nothing."""
        capacity = rows + rows // 4 + _SPARE_ROWS
        return cls(
            codes=np.empty((capacity, dimensions), dtype=np.int8),
            scales=np.empty(capacity, dtype=np.float32),
            residuals=np.empty(capacity),
            ids=np.empty(capacity, dtype=np.int64),
            gone=np.empty(capacity, dtype=np.int64),
            groups=np.empty(capacity, dtype=np.int32),
            keys=np.empty((capacity, KEY_BYTES), dtype=np.uint8),
        )

    @property
    def capacity(self) -> int:
        """Return how many rows fit."""
        return len(self.ids)

    def grown(self, used: int, more: int) -> "ResidentRows":
        """Return arrays with room for ``more`` behind the ``used`` ones: these or larger ones."""
        if used + more <= self.capacity:
            return self
        larger = ResidentRows.with_room_for(used + more, self.codes.shape[1])
        for field in fields(self):
            getattr(larger, field.name)[:used] = getattr(self, field.name)[:used]
        return larger

    def put(
        self,
        positions: npt.NDArray[np.int64],
        ids: Sequence[int],
        keys: Sequence[bytes],
        groups: npt.NDArray[np.int32],
    ) -> None:
        """Fill in what the rows stand for."""
        self.ids[positions] = ids
        self.gone[positions] = HERE
        self.groups[positions] = groups
        self.keys[positions] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)

    def put_vectors(self, positions: npt.NDArray[np.int64], coded: CodedRows) -> None:
        """Fill in what the search needs."""
        self.codes[positions] = coded.codes
        self.scales[positions] = coded.scales
        self.residuals[positions] = coded.residuals

    @property
    def bytes_a_row(self) -> int:
        """Return what a row costs in memory."""
        return sum(getattr(self, field.name)[:1].nbytes for field in fields(self))
