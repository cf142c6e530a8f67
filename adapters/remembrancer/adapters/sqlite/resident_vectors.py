"""The resident copy of an index, and how it follows the table.

A query first reads the state of the index in its own transaction, then

- uses the copy as it is, where the copy holds that state;
- reads what was committed since, where the copy is behind;
- hides what is newer, where its snapshot is older than the copy;
- inside an open write transaction reads what that added, answers, and takes it out again, so that
  a rollback never leaves a trace.

One lock guards the copy; it is held while the copy changes and while a private query runs.
Imported at the first query only, as it imports numpy.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import apsw
import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.code_scan import CodeScan
from remembrancer.adapters.sqlite.metadata_groups import MetadataGroups
from remembrancer.adapters.sqlite.nearest import View, nearest
from remembrancer.adapters.sqlite.resident_loading import append, load
from remembrancer.adapters.sqlite.resident_rows import HERE, ResidentRows
from remembrancer.adapters.sqlite.vector_chunks import KeptVectors
from remembrancer.adapters.sqlite.vector_tables import State, VectorTables
from remembrancer.application.ports.vector_store import Filter, VectorMatch

if TYPE_CHECKING:
    from array import array

GONE_SHARE_MAX = 0.25
"""With more retired rows than this the copy is made anew, without them."""
GONE_ROWS_MIN = 1024
SELECTIONS_KEPT = 16

Positions = npt.NDArray[np.int64]
_NONE: Positions = np.empty(0, dtype=np.int64)
_FilterKey = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Held:
    """What the copy holds.  Replaced as a whole; the arrays behind it are only added to."""

    rows: ResidentRows
    used: int
    state: State
    complete_since: State
    """Older snapshots than this may hold rows that were never read into this copy."""
    retired: Positions
    widest: float
    """The largest residual."""
    selections: dict[_FilterKey, slice | Positions] = field(default_factory=dict)
    """Positions by filter, for this very state."""


class ResidentVectors:
    """Answers queries of one index from memory, checked against the table."""

    def __init__(self, *, tables: VectorTables, dimensions: int) -> None:
        self._tables = tables
        self._dimensions = dimensions
        self._scan = CodeScan()
        self._lock = threading.Lock()
        self._groups = MetadataGroups()
        self._held: _Held | None = None

    def query(
        self,
        connection: apsw.Connection,
        vector: "array[float]",
        top_k: int,
        wanted: Filter,
        *,
        private: bool,
    ) -> list[VectorMatch]:
        """Return the best ``top_k`` in the state that the caller's transaction sees.

        ``private`` says that the transaction may have written: nothing of it may stay here.
        """
        with self._view(connection, wanted, private=private) as view:
            vectors = KeptVectors(self._tables, connection, self._dimensions)
            return nearest(self._scan, view, vectors, np.frombuffer(vector, np.float32), top_k)

    @property
    def rows_held(self) -> int:
        """Return how many rows are in memory, retired ones included."""
        return 0 if self._held is None else self._held.used

    # -- Inside ------------------------------------------------------------

    @contextmanager
    def _view(
        self, connection: apsw.Connection, wanted: Filter, *, private: bool
    ) -> Generator[View]:
        state = self._tables.state(connection)
        with self._lock:
            before = self._held
            if not private:
                view = self._seen(self._followed(connection, state), state, wanted)
            else:
                try:
                    held = self._followed(connection, state)
                    yield self._seen(held, state, wanted)
                finally:
                    self._rewind(before)
                return
        yield view

    def _followed(self, connection: apsw.Connection, state: State) -> _Held:
        """Return what holds at least ``state``."""
        held = self._held
        if held is not None and held.state == state:
            return held
        if held is None or _crowded(held):
            self._held = self._loaded(connection, state)
            return self._held
        if state < held.complete_since:
            return self._loaded(connection, state)  # For this old snapshot only; not kept.
        if state.last_id > held.state.last_id or state.last_gone > held.state.last_gone:
            self._held = self._advanced(connection, held, state)
            return self._held
        return held

    def _loaded(self, connection: apsw.Connection, state: State) -> _Held:
        rows, used = load(self._tables, connection, self._dimensions, self._groups)
        widest = _widest(rows, 0, used)
        return _Held(rows, used, state, complete_since=state, retired=_NONE, widest=widest)

    def _advanced(self, connection: apsw.Connection, held: _Held, state: State) -> _Held:
        rows, used, retired = held.rows, held.used, held.retired
        gone = dict(self._tables.gone_after(connection, held.state.last_gone))
        if state.last_id > held.state.last_id:
            rows, used = append(
                self._tables, connection, held.state.last_id, (rows, used), self._groups
            )
        if gone:  # Marked last: nothing after it reads the file and could fail.
            found = np.flatnonzero(np.isin(rows.ids[: held.used], list(gone)))
            rows.gone[found] = [gone[id_] for id_ in rows.ids[found].tolist()]
            retired = np.union1d(retired, found)
        # A row that came and went since the last reading isn't here, but a snapshot may have it.
        missed = any(id_ > held.state.last_id for id_ in gone)
        return replace(
            held,
            rows=rows,
            used=used,
            state=state,
            complete_since=state if missed else held.complete_since,
            retired=retired,
            widest=max(held.widest, _widest(rows, held.used, used)),
            selections={},
        )

    def _rewind(self, before: _Held | None) -> None:
        if self._held is not None and before is not None and self._held is not before:
            newly = np.setdiff1d(self._held.retired, before.retired)
            before.rows.gone[newly[newly < before.used]] = HERE
        self._held = before

    def _seen(self, held: _Held, state: State, wanted: Filter) -> View:
        rows, used = held.rows, held.used
        if state == held.state:
            hidden, selections = held.retired, held.selections
        else:
            newer = (rows.ids[:used] > state.last_id) | (rows.gone[:used] <= state.last_gone)
            hidden, selections = np.flatnonzero(newer), {}
        if not wanted:
            return View(rows, slice(0, used), hidden, held.widest)
        key = tuple(
            sorted((name, (v,) if isinstance(v, str) else tuple(v)) for name, v in wanted.items())
        )
        selected = selections.get(key)
        if selected is None:
            selected = _selected(rows, used, hidden, self._groups.matching(wanted))
            if len(selections) < SELECTIONS_KEPT:
                selections[key] = selected
        return View(rows, selected, _NONE, held.widest)


def _widest(rows: ResidentRows, start: int, end: int) -> float:
    return float(rows.residuals[start:end].max(initial=0.0))


def _crowded(held: _Held) -> bool:
    return len(held.retired) > max(GONE_ROWS_MIN, GONE_SHARE_MAX * held.used)


def _selected(
    rows: ResidentRows, used: int, hidden: Positions, matching: npt.NDArray[np.bool_]
) -> slice | Positions:
    matches = matching[rows.groups[:used]]
    matches[hidden] = False
    positions = np.flatnonzero(matches)
    if len(positions) and positions[-1] - positions[0] + 1 == len(positions):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions
