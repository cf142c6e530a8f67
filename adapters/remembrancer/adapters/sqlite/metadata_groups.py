"""Metadata of many rows: each distinct set once, as numbers.

Entries of one owner and scope share their metadata, so there are far fewer sets (*groups*) than
rows.  A filter is decided for groups, and a row only looks up its group's answer.

Imported at the first query only, as it imports numpy.
"""

import json
from array import array

import numpy as np
import numpy.typing as npt

from remembrancer.application.ports.vector_store import Filter

KEPT_TOGETHER = ("tenant", "owner", "scope")
"""Rows that agree in these stand side by side in memory: an owner's are scanned in place."""
_MISSING = 0


class MetadataGroups:
    """Grows only; a group keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns: dict[str, _Column] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, spelt: str) -> int:
        """Return the group of metadata spelt in canonical JSON.

        Raises:
            ValueError: it isn't metadata; nothing was added.
        """
        found = self._numbers.get(spelt)
        if found is not None:
            return found
        metadata = json.loads(spelt)
        if type(metadata) is not dict or not all(type(one) is str for one in metadata.values()):
            raise ValueError("isn't an object of strings")
        group = self._numbers[spelt] = len(self._numbers)
        for key, value in metadata.items():
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = _Column()
            column.put(group, value)
        return group

    def matching(self, wanted: Filter) -> npt.NDArray[np.bool_]:
        """Return for each group whether it matches."""
        matches = np.ones(len(self), dtype=np.bool_)
        for key, value in wanted.items():
            column = self._columns.get(key)
            if column is None:
                matches[:] = False
                break
            matches &= column.holds((value,) if isinstance(value, str) else value, len(self))
        return matches

    def order(self) -> npt.NDArray[np.int64]:
        """Return each group's place when groups that are kept together stand side by side."""
        keys = [np.arange(len(self), dtype=np.int32)]
        keys += [
            self._columns[key].codes(len(self))
            for key in reversed(KEPT_TOGETHER)
            if key in self._columns
        ]
        places = np.empty(len(self), dtype=np.int64)
        places[np.lexsort(keys)] = np.arange(len(self))
        return places


class _Column:
    """The values of one key, by group."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._codes = array("i")

    def put(self, group: int, value: str) -> None:
        self._codes.extend([_MISSING] * (group - len(self._codes)))
        self._codes.append(self._values.setdefault(value, len(self._values) + 1))

    def codes(self, groups: int) -> npt.NDArray[np.int32]:
        self._codes.extend([_MISSING] * (groups - len(self._codes)))
        return np.array(self._codes, dtype=np.int32)

    def holds(self, values: tuple[str, ...], groups: int) -> npt.NDArray[np.bool_]:
        wanted = np.zeros(len(self._values) + 1, dtype=np.bool_)
        for value in values:
            code = self._values.get(value)
            if code is not None:
                wanted[code] = True
        return wanted[self.codes(groups)]
