"""Entries whose vectors are bought: reserved first, one budget, and kept whatever happens."""

from pathlib import Path

import pytest
from tests.composition.remote_world import (
    WHO,
    a_context,
    a_query,
    an_entry,
    meaning,
    open_world,
)

from remembrancer.composition import Remembrancer
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.contracts.loopback_provider import cut_off, honest, reset, status
from remembrancer.domain import RecallMode, Sensitivity
from remembrancer.domain.errors import ReindexStoppedError
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

ENTRIES = [an_entry(f"Invoice number {number}.") for number in range(3)]


def test_remember_reserves_indexing_before_its_request(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        world.admit()
        memory = world.open()

        memory.remember(ENTRIES[0])

        assert world.sent == [ENTRIES[0].text]
        events = [
            one.event
            for one in memory._container.store().log.follow(after_position=0, limit=10)
            if isinstance(one.event, LedgerEvent)
        ]
        assert [type(one).__name__ for one in events] == [
            "ReservationAdmitted",
            "ReservationSettled",
        ]
        assert isinstance(events[0], ReservationAdmitted)
        assert events[0].kind == "indexing"
        assert memory.status().versions_by_vector == 1


def test_remember_many_is_one_request_for_many(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        world.admit()
        memory = world.open()

        memory.remember_many([an_entry(f"note {number}") for number in range(100)])

        assert [len(request.texts) for request in world.server.requests] == [64, 36]
        assert memory.status().versions_by_vector == 100
        [day] = memory.spend(**WHO)
        assert (day.requests, day.pending, day.unknown) == (2, 0, 0)


def test_a_retry_with_the_same_key_costs_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        world.admit()
        memory, entry = world.open(), an_entry("Once.", idempotency_key="k")

        assert memory.remember(entry) == memory.remember(entry)

        assert len(world.server.requests) == 1


@pytest.mark.parametrize("behaviour", [status(429), status(500), reset(), cut_off()])
def test_an_unknown_outcome_leaves_the_entry_found_by_keywords_and_embeds_it_later(
    behaviour: object, tmp_path: Path
) -> None:
    with open_world(tmp_path, behaviour, meaning()) as world:  # type: ignore[arg-type] # one
        world.admit()
        memory = world.open()

        memory.remember(ENTRIES[0])

        found = memory.recall(a_query("invoice"), a_context())
        assert [one.text for one in found.entries] == [ENTRIES[0].text]
        assert memory.status().versions_by_vector == 0
        [day] = memory.spend(**WHO)
        assert day.unknown_quanta == day.reserved_quanta
        assert memory.reindex_missing() == 1
        assert memory.status().versions_by_vector == 1
        assert memory.reindex_missing() == 0
        assert len(world.server.requests) == 2


def test_a_provider_that_is_away_is_not_asked_for_each_batch(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        world.admit()
        memory = world.open()

        memory.remember_many([an_entry(f"note {number}") for number in range(1_200)])

        assert len(world.server.requests) == 2
        assert memory.status().entries == 1_200


def test_a_correction_buys_a_vector_too_and_is_kept_without_one(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning(), meaning(), status(500)) as world:
        world.admit()
        memory = world.open()
        entry_id = memory.remember(ENTRIES[0])

        memory.correct(entry_id, text="Receipts, not invoices.", reason="outdated")
        memory.correct(entry_id, text="Neither of them.", reason="outdated")

        assert [one.texts for one in world.server.requests] == [
            [ENTRIES[0].text],
            ["Receipts, not invoices."],
            ["Neither of them."],
        ]
        [found] = memory.recall(a_query("neither"), a_context()).entries
        assert (found.entry_id, found.version) == (entry_id, 3)
        assert memory.spend(**WHO)[0].unknown == 1


def test_what_may_not_leave_is_kept_without_a_vector(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        world.admit()
        memory = world.open()
        secret = an_entry("The vault opens with AK" + "IA" + "QWERTZUIOPASDFGH")
        labelled = an_entry("Payroll notes.", sensitivity=Sensitivity.CONFIDENTIAL)

        memory.remember_many([secret, labelled, ENTRIES[0]])

        assert world.sent == [ENTRIES[0].text]
        found = memory.recall(a_query("vault"), a_context())
        assert [one.text for one in found.entries] == [secret.text]


def test_not_admitted_entries_are_kept_and_embedded_once_they_may_be(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        memory = world.open()
        memory.remember_many(ENTRIES)
        assert world.server.connections == 0
        memory.close()

        world.admit()
        memory = world.open()

        assert memory.reindex_missing() == 3
        assert memory.status().dense == "ready"


# -- One budget, in both directions --------------------------------------------------------------


def test_what_indexing_has_used_queries_cannot_use(tmp_path: Path) -> None:
    with open_world(tmp_path, honest(), ceilings={"requests_per_day": 1}) as world:
        world.admit()
        memory = world.open()
        memory.remember(ENTRIES[0])

        report = memory.prepare([a_query("invoice")], a_context(), **WHO)

        assert report.outcomes[0].reason == "over_request_ceiling"
        assert len(world.server.requests) == 1


def test_what_queries_have_used_indexing_cannot_use(tmp_path: Path) -> None:
    with open_world(tmp_path, honest(), ceilings={"requests_per_day": 1}) as world:
        world.admit()
        memory = world.open()
        memory.prepare([a_query("invoice")], a_context(), **WHO)

        memory.remember(ENTRIES[0])

        assert len(world.server.requests) == 1
        found = memory.recall(a_query("number", limit=1), a_context())
        assert [one.text for one in found.entries] == [ENTRIES[0].text]


def test_a_budget_too_small_for_all_texts_buys_as_many_as_fit(tmp_path: Path) -> None:
    one_text = (len(ENTRIES[0].text) + 2) * 100
    with open_world(
        tmp_path, meaning(), ceilings={"quanta_per_day": one_text + 100}
    ) as world:  # fmt: skip
        world.admit()
        memory = world.open()

        memory.remember_many(ENTRIES)

        assert len(world.server.requests) >= 1
        [day] = memory.spend(**WHO)
        assert day.charged_quanta <= day.ceiling_quanta
        assert memory.status().versions_by_vector == len(world.sent) > 0


# -- Another space -------------------------------------------------------------------------------


def test_reindexing_to_the_remote_space_stops_where_the_budget_ends(tmp_path: Path) -> None:
    old = HashingEmbedder()
    with open_world(tmp_path, meaning(), ceilings={"requests_per_day": 5}) as world:
        memory = world.open()
        memory.remember_many([an_entry(f"note {number}") for number in range(400)])
        memory.reindex(embedder=old)
        memory.close()
        world.admit()
        memory = world.open()
        memory._container.embedders().add(old)

        with pytest.raises(ReindexStoppedError) as stopped:
            memory.reindex()

        assert stopped.value.reason == "over_request_ceiling"
        assert 0 < stopped.value.position < stopped.value.end
        assert len(world.sent) == 5 * 64
        found = memory.recall(a_query("note"), a_context())
        assert found.embedding_tuple == old.embedding_tuple
        assert found.mode is RecallMode.HYBRID


def test_reindexing_goes_on_where_it_stopped_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning(), ceilings={"requests_per_day": 5}) as world:
        memory = world.open()
        memory.remember_many([an_entry(f"note {number}") for number in range(400)])
        memory.close()
        world.admit()
        memory = world.open()
        with pytest.raises(ReindexStoppedError):
            memory.reindex()
        memory.close()

        world.change(ceilings={"requests_per_day": 100})
        world.admit()
        done = world.open().reindex()

        assert done.vectors == 400
        assert done.resumed_from == 320
        assert sorted(world.sent) == sorted(f"note {number}" for number in range(400))


def test_a_provider_that_is_away_stops_it_too(tmp_path: Path) -> None:
    with open_world(tmp_path, status(503)) as world:
        memory = world.open()
        memory.remember_many(ENTRIES)
        memory.close()
        world.admit()

        with pytest.raises(ReindexStoppedError) as stopped:
            world.open().reindex()

        assert stopped.value.reason == "status_503"


def test_whoever_allows_gaps_gets_them_and_can_fill_them(tmp_path: Path) -> None:
    with open_world(tmp_path, status(503), meaning()) as world:
        memory = world.open()
        memory.remember_many(ENTRIES)
        memory.close()
        world.admit()
        memory = world.open()

        done = memory.reindex(allow_gaps=True)

        assert done.vectors == 0
        assert memory.reindex_missing() == 3


def test_texts_that_may_not_leave_do_not_stop_it(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning()) as world:
        memory = world.open()
        memory.remember_many([*ENTRIES, an_entry("Payroll.", sensitivity=Sensitivity.RESTRICTED)])
        memory.close()
        world.admit()

        assert world.open().reindex().vectors == 3


def _again(memory: Remembrancer) -> None:
    memory.reindex()
    memory.reindex_missing()


@pytest.mark.parametrize(
    ("labels", "sent"),
    [
        # Each label goes with a text; a text that is None stays as it was.
        ([("internal", "wall code"), ("restricted", None)], ["wall code"]),
        (
            [("internal", "wall code"), ("restricted", None), ("internal", "no code")],
            ["wall code", "no code", "no code"],
        ),
        (
            [("confidential", "wall code"), ("internal", "no code")],
            ["no code", "no code"],
        ),
    ],
)
def test_what_was_labelled_too_low_does_not_leave_again(
    labels: list[tuple[str, str | None]], sent: list[str], tmp_path: Path
) -> None:
    """A label that was corrected holds for the version that had the wrong one, too."""
    (first, text), *later = labels
    with open_world(tmp_path, meaning()) as world:
        world.admit()
        memory = world.open()
        entry_id = memory.remember(an_entry(text or "", sensitivity=Sensitivity(first)))
        for label, new_text in later:
            memory.correct(
                entry_id, sensitivity=Sensitivity(label), text=new_text, reason="mislabelled"
            )

        _again(memory)

        assert world.sent == sent
