"""What every store promises an auditor: all of it, raw, in one state, without a trace.

Enrol an adapter by subclassing :class:`AuditSourceContract`::

    class TestMyAuditSource(AuditSourceContract):
        @contextmanager
        def opened(self, folder: Path, clock: FixedClock) -> Generator[AuditedStore]:
            with MyStore.open(folder) as store:
                yield AuditedStore(..., source=lambda: MyAuditSource.open(folder))
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import pytest

from remembrancer.application.entry_index import index_id, labels
from remembrancer.application.load import append
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    SessionVault,
    SparseDocument,
    SparseIndex,
    Transactions,
    VectorIndexes,
)
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.event_log_examples import history, remembered
from remembrancer.contracts.originals import FIRST, HOUR, MORNING, SECOND, an_original
from remembrancer.contracts.spending import FIRST_ID, QUERY, SECOND_ID, Spender, terms
from remembrancer.contracts.vector_examples import EAST
from remembrancer.contracts.vector_indexes import SPACE
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.identity import version_id

WHOSE = ("acme", "ana")
KEY = bytes(range(32))
STAGE = UUID(int=77)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedStore:
    """A store that is written to through its ports, and how an auditor opens it."""

    transactions: Transactions
    log: EventLog
    vault: EntryVault
    sessions: SessionVault
    sparse: SparseIndex
    indexes: VectorIndexes
    ledger: LedgerRepository
    source: Callable[[], AbstractContextManager[AuditSource]]

    @contextmanager
    def writing(self) -> Generator[None]:
        """Write as the one owner there is."""
        with self.transactions.acting_for(*WHOSE), self.transactions.begin():
            yield


class AuditSourceContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the store."""

    keeps_one_state: ClassVar[bool] = True
    """Whether a source goes on seeing the state it was opened in while others write."""
    keeps_copies: ClassVar[bool] = True
    """Whether the store keeps copies of long ledgers."""

    @abstractmethod
    def opened(self, folder: Path, clock: FixedClock) -> AbstractContextManager[AuditedStore]:
        """Open a store kept in ``folder``, empty at first, whose time is ``clock``'s."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[AuditedStore]:
        with self.opened(tmp_path, FixedClock(MORNING)) as store:
            yield store

    # -- The log -----------------------------------------------------------

    def test_an_empty_store_has_nothing_to_read(self, store: AuditedStore) -> None:
        with store.source() as source:
            parts = [
                *(source.events(), source.streams(), source.originals(), source.erased()),
                *(source.receipts(), source.snapshots(), source.words(), source.vectors()),
                *(source.spaces(), source.sessions()),
            ]

            assert [list(part) for part in parts] == [[]] * len(parts)
            assert (source.extent().events, source.extent().last) == (0, 0)

    def test_a_sound_store_has_no_faults(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=2))

        with store.source() as source:
            assert list(source.faults()) == []
            assert not source.changed_meanwhile()

    def test_events_come_by_position_as_they_are_stored(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append([*history(1, corrections=1), *history(2, corrections=0)])

        with store.source() as source:
            events = list(source.events())

        stream = MemoryEntry.create_id("acme", UUID(int=1)).bytes
        assert [event[1:4] for event in events[:2]] == [
            (stream, 1, MemoryEntry.EntryRemembered.TOPIC),
            (stream, 2, MemoryEntry.EntryCorrected.TOPIC),
        ]
        assert [event[0] for event in events] == sorted(event[0] for event in events)
        predecessor = GENESIS
        for _, _, _, topic, state, before, own in events[:2]:
            assert before == predecessor
            predecessor = event_hash(before, topic, state)
            assert own == predecessor

    def test_events_can_be_read_from_a_position_on(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=3))

        with store.source() as source:
            events = list(source.events())

            assert list(source.events(after_position=events[1][0])) == events[2:]

    def test_streams_come_whole_by_their_ids_and_versions(self, store: AuditedStore) -> None:
        with store.writing():
            for number in range(1, 9):
                store.log.append(history(number, corrections=1))
            append(store.log, remembered(9))

        with store.source() as source:
            keys = [event[1:3] for event in source.streams()]

            assert keys == sorted(event[1:3] for event in source.events())
            assert len(keys) == 17

    def test_one_stream_is_read_alone(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=2))
            store.log.append(history(2, corrections=0))
        stream = MemoryEntry.create_id("acme", UUID(int=1))

        with store.source() as source:
            assert [event[2] for event in source.stream(stream)] == [1, 2, 3]

    def test_the_extent_counts_the_log(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=2))

        with store.source() as source:
            extent, positions = source.extent(), [event[0] for event in source.events()]

        assert (extent.events, extent.first, extent.last) == (3, positions[0], positions[-1])
        assert extent.given in {None, extent.last}

    # -- The vault ---------------------------------------------------------

    def test_every_kept_version_is_read(self, store: AuditedStore) -> None:
        first, second = an_original(), an_original(version=2, text="Zweite.")
        with store.writing():
            store.vault.keep([first])
            store.vault.keep([second])

        with store.source() as source:
            rows = sorted(source.originals(), key=lambda row: row[1])

        assert [row[:7] for row in rows] == [
            (FIRST.bytes, 1, "acme", "ana", "project/alpha", "note", "internal"),
            (FIRST.bytes, 2, "acme", "ana", "project/alpha", "note", "internal"),
        ]
        seconds = 1_893_456_000 + 7 * 3_600
        assert [row[7:9] for row in rows] == [
            (seconds * 10**6, (seconds + 3_600) * 10**6),
            ((seconds + 3_600) * 10**6, None),
        ]
        assert [row[9:] for row in rows] == [
            (bytes.fromhex(one.digest), one.salt, one.text) for one in (first, second)
        ]

    def test_texts_of_versions_are_looked_up(self, store: AuditedStore) -> None:
        first, second = an_original(metadata={"path": "a.md"}), an_original(version=2)
        with store.writing():
            store.vault.keep([first])
            store.vault.keep([second])
        wanted = [(FIRST.bytes, 1), (FIRST.bytes, 2), (FIRST.bytes, 3), (SECOND.bytes, 1)]

        with store.source() as source:
            found = sorted(source.texts(wanted))
            none = source.texts([])

        assert [(*row[:6], json.loads(row[6]), row[7]) for row in found] == [
            (
                *(FIRST.bytes, one.version, "project/alpha", "note", "internal"),
                *(bytes.fromhex(one.digest), one.metadata, one.text),
            )
            for one in (first, second)
        ]
        assert none == []

    def test_what_was_erased_is_told_and_gone(self, store: AuditedStore) -> None:
        with store.writing():
            store.vault.keep([an_original(), an_original(SECOND)])
        with store.writing():
            store.vault.erase(FIRST)

        with store.source() as source:
            assert [row[0] for row in source.originals()] == [SECOND.bytes]
            assert list(source.erased()) == [(FIRST.bytes, "acme")]

    def test_sessions_keys_and_items_are_read(self, store: AuditedStore) -> None:
        with store.writing():
            store.sessions.keep_key(
                STAGE, tenant="acme", owner="ana", session="session-1", key=KEY
            )
            store.sessions.keep_items(STAGE, number=1, items=b"[]")

        with store.source() as source:
            assert list(source.sessions()) == [(STAGE.bytes, "acme", "ana", "session-1")]
            assert source.session(STAGE.bytes, number=1) == (KEY, b"[]")
            assert source.session(STAGE.bytes, number=2) == (KEY, None)
            assert source.session(UUID(int=78).bytes, number=1) == (None, None)
            asked = [(STAGE.bytes, 1), (STAGE.bytes, 2), (UUID(int=78).bytes, 1)]
            assert source.items(asked) == {
                asked[0]: (KEY, b"[]"),
                asked[1]: (KEY, None),
                asked[2]: (None, None),
            }
            assert source.items([]) == {}

    # -- Projections -------------------------------------------------------

    def test_receipts_say_what_became_of_reservations(self, store: AuditedStore) -> None:
        ana = Spender(store.ledger)
        ana.admit(FIRST_ID, kind=QUERY, charge=10)
        ana.settle(FIRST_ID, charge=3, usage=7)
        ana.admit(SECOND_ID, charge=20)
        ana.lose(SECOND_ID)

        with store.source() as source:
            rows = sorted(source.receipts(), key=lambda row: row[2])

        assert [(*row[:4], *row[5:7], *row[9:14]) for row in rows] == [
            (*WHOSE, FIRST_ID.bytes, "query", "settled", "2030-01-01", 10, 3, 7, None, 1),
            (
                *(*WHOSE, SECOND_ID.bytes, "indexing", "unknown", "2030-01-01"),
                *(20, 20, None, "timeout", 3),
            ),
        ]
        assert [row[8] - row[7] for row in rows] == [15_000_000] * 2

    def test_copies_of_ledgers_are_read_as_they_are(self, store: AuditedStore) -> None:
        ana = Spender(store.ledger)
        for number in range(100, 120):
            ana.admit(UUID(int=number), under=terms(quanta=10**6, requests=10**6))
            ana.settle(UUID(int=number))

        with store.source() as source:
            copies = list(source.snapshots())

            assert [copy[:2] for copy in copies] == [WHOSE] * self.keeps_copies
            assert source.snapshot(*WHOSE) == next(iter(copies), None)
            assert source.snapshot("acme", "bob") is None

    def test_places_in_the_sparse_index_are_read(self, store: AuditedStore) -> None:
        original = an_original()
        with store.writing():
            store.sparse.upsert_many(
                [SparseDocument(index_id(original), original.text, labels(original))]
            )

        with store.source() as source:
            assert list(source.words()) == [(FIRST.bytes, *WHOSE)]

    def test_places_in_vector_indexes_are_read(self, store: AuditedStore) -> None:
        original = an_original()
        with store.writing():
            index = store.indexes.activate(store.indexes.begin(SPACE))
            store.indexes.store(index).upsert(index_id(original), EAST, labels(original))

        with store.source() as source:
            spaces = list(source.spaces())

            assert [one.tuple_digest for one in spaces] == [SPACE.digest]
            assert list(source.vectors()) == [(spaces[0].number, FIRST.bytes, *WHOSE)]

    def test_it_tells_which_places_belong_to_kept_versions(self, store: AuditedStore) -> None:
        with store.writing():
            store.vault.keep([an_original()])
            store.vault.keep([an_original(version=2)])
        old, never = version_id(FIRST, 1).bytes, version_id(FIRST, 2).bytes

        with store.source() as source:
            kept = source.kept([FIRST.bytes, old, never, SECOND.bytes])

            assert kept == {FIRST.bytes, old}
            assert source.kept([]) == frozenset()

    # -- As a whole --------------------------------------------------------

    def test_it_can_be_asked_while_the_log_is_read(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=4))
            store.vault.keep([an_original()])

        with store.source() as source:
            seen = [
                (event[2], len(source.texts([(FIRST.bytes, 1)]))) for event in source.streams()
            ]

        assert seen == [(version, 1) for version in range(1, 6)]

    def test_it_reads_one_state_while_others_write(self, store: AuditedStore) -> None:
        with store.writing():
            store.log.append(history(1, corrections=0))
        if not self.keeps_one_state:
            return

        with store.source() as source:
            before = source.extent().events
            with store.writing():
                store.log.append(history(2, corrections=0))

            assert (before, source.extent().events, len(list(source.streams()))) == (1, 1, 1)

    def test_every_tenant_is_seen(self, store: AuditedStore) -> None:
        with store.transactions.acting_for("other", "ana"), store.transactions.begin():
            append(store.log, _of_another_tenant())
        with store.writing():
            store.log.append(history(1, corrections=0))

        with store.source() as source:
            assert source.extent().events == 2


def _of_another_tenant() -> MemoryEntry:
    return MemoryEntry.remember(
        an_original(SECOND, tenant="other").header, digest="ab" * 32, length=7, at=MORNING + HOUR
    )
