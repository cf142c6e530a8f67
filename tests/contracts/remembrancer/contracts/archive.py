"""What every archive promises.

Enrol an adapter by subclassing :class:`ArchiveContract`::

    class TestMyArchive(ArchiveContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[ArchiveStore]:
            with MyStore.open(folder) as store:
                yield ArchiveStore(archive=MyArchive(store), log=..., ...)

What is taken in under row security is taken in by ``acting_for`` its owner, as here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from remembrancer.application.ports.archive import WHOLE, Counts, Part
from remembrancer.contracts.archive_examples import (
    ArchiveStore,
    a_context_fed_by,
    keep_originals,
    keep_sessions,
    life,
    revived,
    selected,
    spent,
    take_erased,
    unplaced,
)
from remembrancer.contracts.originals import FIRST, SALT, SECOND
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.spending import FIRST_ID, SECOND_ID
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.reservation import ReservationState


class ArchiveContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[ArchiveStore]:
        """Open a store kept in ``folder``, empty at first."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ArchiveStore]:
        with self.opened(tmp_path / "one") as store:
            yield store

    @pytest.fixture
    def other(self, tmp_path: Path) -> Iterator[ArchiveStore]:
        with self.opened(tmp_path / "other") as store:
            yield store

    # -- Reading events ----------------------------------------------------

    def test_an_empty_store_has_nothing(self, store: ArchiveStore) -> None:
        with store.transactions.over_all_tenants(), store.transactions.snapshot():
            assert store.archive.is_empty()
            assert store.archive.counts(WHOLE) == Counts(events=0, originals=0, sessions=0)
            assert list(store.archive.originals(WHOLE)) == []
            assert list(store.archive.sessions(WHOLE)) == []
        assert store.events() == []

    def test_gives_events_as_they_are_recorded(self, store: ArchiveStore) -> None:
        events = life(1, corrections=1)
        store.append("ana", events)

        first, second = store.events()

        assert (first.tenant, first.owner, first.version) == ("acme", "ana", 1)
        assert (first.predecessor, second.predecessor) == (GENESIS, first.own)
        assert second.own == event_hash(first.own, second.topic, second.state)
        assert [revived(store, one) for one in (first, second)] == events

    def test_gives_events_in_the_order_of_positions(self, store: ArchiveStore) -> None:
        one, two = life(1, corrections=1), life(2, owner="ben", corrections=1)
        for owner, event in zip(("ana", "ben", "ben", "ana"), (one[0], *two, one[1]), strict=True):
            store.append(owner, [event])

        found = store.events()

        assert [revived(store, event) for event in found] == [one[0], *two, one[1]]
        assert [event.owner for event in found] == ["ana", "ben", "ben", "ana"]
        assert [one.position for one in found] == sorted({one.position for one in found})

    def test_an_owners_events_are_those_of_its_streams(self, store: ArchiveStore) -> None:
        mine = life(1, corrections=1)
        store.append("ana", mine)
        store.append("ben", life(2, owner="ben"))
        store.append("ana", life(3, tenant="acme-corp"), tenant="acme-corp")

        found = store.events(Part(tenant="acme", owner="ana"))

        assert [revived(store, one) for one in found] == mine

    def test_a_tenants_events_are_those_of_its_owners(self, store: ArchiveStore) -> None:
        store.append("ana", life(1))
        store.append("ben", life(2, owner="ben"))
        store.append("ana", life(3, tenant="acme-corp"), tenant="acme-corp")

        found = store.events(Part(tenant="acme"))

        assert [one.owner for one in found] == ["ana", "ben"]

    def test_pages_go_on_behind_a_position(self, store: ArchiveStore) -> None:
        store.append("ana", life(1, corrections=4))
        mine = Part(tenant="acme", owner="ana")

        page = store.events(mine, limit=2)
        rest = store.events(mine, after_position=page[-1].position, limit=2)

        assert [one.version for one in page + rest] == [1, 2, 3, 4]

    def test_the_newest_come_in_order_too(self, store: ArchiveStore) -> None:
        store.append("ana", life(1, corrections=4))

        newest = store.events(Part(tenant="acme", owner="ana"), limit=2, newest=True)

        assert [one.version for one in newest] == [4, 5]

    def test_a_sessions_events_are_those_of_its_stages(self, store: ArchiveStore) -> None:
        for session, stage in (("s-1", "plan"), ("s-2", "plan"), ("s-1", "act")):
            store.append("ana", selected(session, stage))

        found = store.events(Part(tenant="acme", session="s-1"))

        streams = [L3Selection.create_id("acme", "s-1", stage) for stage in ("plan", "act")]
        assert [one.stream_id for one in found] == streams

    def test_a_session_of_another_tenant_is_another(self, store: ArchiveStore) -> None:
        store.append("ana", selected("s-1", "plan", tenant="acme-corp"), tenant="acme-corp")

        assert store.events(Part(tenant="acme", session="s-1")) == []

    def test_a_reservations_events_are_found_in_every_stream(self, store: ArchiveStore) -> None:
        admitted, settled, other = spent()
        prepared = a_context_fed_by(FIRST_ID)
        store.append("ana", [admitted, settled, other])
        store.append("ana", prepared)

        found = store.events(Part(tenant="acme", owner="ana", reservation_id=FIRST_ID))

        assert [revived(store, one) for one in found] == [admitted, settled, prepared[1]]
        assert store.events(Part(tenant="acme", owner="ben", reservation_id=FIRST_ID)) == []

    def test_gives_one_stream(self, store: ArchiveStore) -> None:
        store.append("ana", life(1, corrections=1))
        store.append("ana", life(2))
        stream = MemoryEntry.create_id("acme", UUID(int=1))

        found = store.events(Part(stream_id=stream))

        assert [(one.stream_id, one.version) for one in found] == [(stream, 1), (stream, 2)]

    # -- Reading what is kept ----------------------------------------------

    def test_gives_every_kept_version(self, store: ArchiveStore) -> None:
        keep_originals(store)

        with store.transactions.acting_for("acme"), store.transactions.snapshot():
            found = list(store.archive.originals(Part(tenant="acme")))
            of_ben = list(store.archive.originals(Part(tenant="acme", owner="ben")))

        assert {(one.entry_id, one.version) for one in found} == {
            (FIRST, 1), (FIRST, 2), (SECOND, 1)}  # fmt: skip
        assert [one.version for one in found if one.entry_id == FIRST] == [1, 2]
        assert found[0].superseded_at == found[1].recorded_at or found[0].entry_id == SECOND
        assert [one.owner for one in of_ben] == ["ben"]

    def test_an_erased_original_is_not_given(self, store: ArchiveStore) -> None:
        keep_originals(store)
        with store.transactions.acting_for("acme", "ana"):
            store.vault.erase(FIRST)

        with store.transactions.acting_for("acme"), store.transactions.snapshot():
            found = list(store.archive.originals(Part(tenant="acme")))

        assert [one.entry_id for one in found] == [SECOND]

    def test_gives_what_sessions_keep(self, store: ArchiveStore) -> None:
        keep_sessions(store)

        with store.transactions.acting_for("acme"), store.transactions.snapshot():
            first, second = store.archive.sessions(Part(tenant="acme"))

        assert (first.selection_id, first.owner, first.session) == (UUID(int=1), "ana", "s-1")
        assert first.key == SALT
        assert (first.items, second.items) == (((1, b"[1]"), (2, b"[2]")), ())

    def test_counts_what_it_gives(self, store: ArchiveStore) -> None:
        store.append("ana", life(1, corrections=1))
        store.append("ben", life(2, owner="ben"))
        keep_originals(store)
        keep_sessions(store)

        with store.transactions.acting_for("acme"), store.transactions.snapshot():
            counts = store.archive.counts(Part(tenant="acme"))
            of_ana = store.archive.counts(Part(tenant="acme", owner="ana"))

        assert counts == Counts(events=3, originals=3, sessions=2)
        assert of_ana == Counts(events=2, originals=2, sessions=1)

    @pytest.mark.parametrize("what", ["events", "originals", "sessions", "erased"])
    def test_a_store_with_anything_is_not_empty(self, store: ArchiveStore, what: str) -> None:
        if what == "events":
            store.append("ana", life(1))
        elif what == "originals":
            keep_originals(store)
        elif what == "sessions":
            keep_sessions(store)
        else:
            take_erased(store)

        with store.transactions.over_all_tenants():
            assert not store.archive.is_empty()

    # -- Taking in ---------------------------------------------------------

    def test_events_are_the_same_in_another_store(
        self, store: ArchiveStore, other: ArchiveStore
    ) -> None:
        store.append("ana", life(1, corrections=1))
        store.append("ben", life(2, owner="ben"))
        store.append("ana", spent())

        other.take(store.events())

        assert unplaced(other.events()) == unplaced(store.events())
        with other.transactions.acting_for("acme", "ana"):
            read = list(other.log.read(MemoryEntry.create_id("acme", UUID(int=1))))
        assert read == life(1, corrections=1)

    def test_what_was_taken_in_is_gone_on_with(
        self, store: ArchiveStore, other: ArchiveStore
    ) -> None:
        events = life(1, corrections=1)
        store.append("ana", events[:1])
        other.take(store.events())

        other.append("ana", events[1:])
        store.append("ana", events[1:])

        assert unplaced(other.events()) == unplaced(store.events())

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"predecessor": bytes(31) + b"\1"},
            {"state": b"{}"},
            {"topic": "another"},
            {"own": bytes(32)},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_an_event_that_was_altered_is_not_taken_in(
        self, store: ArchiveStore, other: ArchiveStore, change: dict[str, object]
    ) -> None:
        store.append("ana", life(1))
        [one] = store.events()

        with pytest.raises(MalformedRecordError) as refused:
            other.take([replace(one, **change)])  # type: ignore[arg-type]  # One of its fields.

        assert refused.value.stream_id == one.stream_id
        assert other.events() == []

    def test_a_gap_or_a_repetition_is_not_taken_in(
        self, store: ArchiveStore, other: ArchiveStore
    ) -> None:
        store.append("ana", life(1, corrections=2))
        first, second, third = store.events()

        for wrong in ([second], [first, third], [first, first]):
            with pytest.raises(MalformedRecordError):
                other.take(wrong)

        assert other.events() == []

    def test_an_erased_entry_is_known_as_erased(self, store: ArchiveStore) -> None:
        take_erased(store)

        with store.transactions.acting_for("acme", "ana"):
            assert store.vault.tenant_of_erased(FIRST) == "acme"
            assert store.vault.current([FIRST]) == {}

    def test_receipts_follow_what_was_taken_in(
        self, store: ArchiveStore, other: ArchiveStore
    ) -> None:
        store.append("ana", spent())
        other.take(store.events())

        with other.transactions.acting_for("acme", "ana"):
            other.archive.take_receipts(spent())

        settled = other.ledger.receipt("acme", "ana", FIRST_ID)
        pending_one = other.ledger.receipt("acme", "ana", SECOND_ID)
        assert settled is not None
        assert (settled.state, settled.charged_quanta) == (ReservationState.SETTLED, 3)
        assert pending_one is not None
        assert pending_one.state is ReservationState.PENDING
        [day] = other.ledger.days("acme", "ana")
        assert (day.requests, day.pending, day.ceiling_requests) == (2, 1, 100)

    def test_a_transaction_that_fails_takes_nothing_in(
        self, store: ArchiveStore, other: ArchiveStore
    ) -> None:
        store.append("ana", spent())
        events = store.events()

        with rolled_back(other.transactions):
            other.take(events)
            take_erased(other)
            with other.transactions.acting_for("acme", "ana"):
                other.archive.take_receipts(spent())

        with other.transactions.over_all_tenants():
            assert other.archive.is_empty()
        assert other.ledger.receipt("acme", "ana", FIRST_ID) is None
