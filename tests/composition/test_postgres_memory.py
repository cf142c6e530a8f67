"""The whole memory in PostgreSQL, as a host and an operator have it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.adapters import pgbouncer
from tests.adapters.pooling_relay import PoolingRelay
from tests.application.agreement import assert_agreement
from tests.application.house import (
    a_context,
    a_query,
    an_entry,
    open_house,
    postgres_place,
    replay_of,
)

from remembrancer.composition import production
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import EmbedderSettings, Settings, StoreSettings
from remembrancer.domain import RecallKind
from remembrancer.domain.errors import (
    InvalidInputError,
    SettingsError,
    UnknownEntryError,
    UnknownSelectionError,
)

Pooler = PoolingRelay | pgbouncer.PgBouncer

TEXTS = (
    "The invoice service retries three times, then gives up.",
    "Backups of the storage are one file too.",
    "Retries of the ledger are counted as requests.",
    "東京の請求書は月末に届きます。",
    "Ana prefers pre-edit hooks and v1.2.3.",
)
QUESTIONS = ("invoice retries", "pre-edit", "請求書", "storage backups", "v1.2.3 hooks", '"')


@pytest.fixture
def place(tmp_path: Path) -> Iterator[StoreSettings]:
    with postgres_place(tmp_path) as place:
        yield place


def _opened(place: StoreSettings) -> Remembrancer:
    return production(Settings(store=place, embedder=EmbedderSettings(provider="none")))


# -- As a host has it ----------------------------------------------------------


def test_recall_agrees_with_the_other_stores(tmp_path: Path, place: StoreSettings) -> None:
    """Ids in order, and scores to the last bit."""
    answers = []
    for path in (None, tmp_path / "memory.db", place):
        with open_house(path) as house:
            house.memory.remember_many(
                [
                    an_entry(text, idempotency_key=str(number), subjects=("ana",))
                    for number, text in enumerate(TEXTS)
                ]
            )
            answers.append(
                [
                    [(one.entry_id, one.score, one.ranks) for one in found.entries]
                    for question in QUESTIONS
                    for kind in (RecallKind.DELIBERATE, RecallKind.PEOPLE)
                    for found in [
                        house.memory.recall(
                            a_query(question, kind=kind, subjects=("ana",)), a_context()
                        )
                    ]
                ]
            )

    assert answers[0] == answers[1] == answers[2]


def test_a_pack_is_replayed_by_another_process_of_the_same_memory(place: StoreSettings) -> None:
    with open_house(place) as house:
        house.memory.remember_many([an_entry(text) for text in TEXTS])
        pack = house.memory.build_pack("s", "plan", a_query(), a_context(), token_budget=500)

    with open_house(place) as house:
        again = house.memory.replay("s", "plan", **replay_of())

    assert (again.digest, again.differences) == (pack.digest, ())


def test_a_call_by_id_alone_says_what_to_name(place: StoreSettings) -> None:
    with _opened(place) as memory:
        entry_id = memory.remember(an_entry())

        with pytest.raises(InvalidInputError, match="name the tenant"):
            memory.erase(entry_id, reason="user_request")

        assert memory.erase(entry_id, reason="user_request", tenant="acme").erased == 1


def test_without_the_auditors_role_upkeep_says_what_is_missing(place: StoreSettings) -> None:
    with (
        _opened(place.model_copy(update={"reader_dsn_file": None})) as memory,
        pytest.raises(SettingsError, match="reader_dsn"),
    ):
        memory.status()


def test_eight_threads_write_for_several_owners(place: StoreSettings) -> None:
    with open_house(place) as house:
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            owner = f"owner {number % 4}"
            for step in range(4):
                key = f"{number}.{step}"
                entry_id = house.memory.remember(
                    an_entry(f"common {key}", owner=owner, idempotency_key=key)
                )
                house.memory.correct(
                    entry_id, text=f"common edited {key}", reason="edited", tenant="acme"
                )
                house.memory.recall(a_query("common", owner=owner), a_context())
                if step % 2:
                    house.memory.erase(entry_id, reason="user_request", tenant="acme", owner=owner)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

        entries = assert_agreement(house.store, common_word="common")
    assert len(entries) == 32
    assert sum(one.erased for one in entries.values()) == 16


# -- Attacked through the API --------------------------------------------------


def test_another_tenants_ids_are_as_unknown_as_none(place: StoreSettings) -> None:
    with open_house(place) as house:
        theirs = house.memory.remember(an_entry("a canarybird", owner="eve", tenant="evil"))
        house.memory.build_pack(
            "s", "plan", a_query("canarybird", tenant="evil", owner="eve"), a_context(),
            token_budget=300,
        )  # fmt: skip
        mine: dict[str, Any] = {"tenant": "acme", "owner": "ana"}

        with pytest.raises(UnknownEntryError):
            house.memory.correct(theirs, text="mine now", reason="edited", **mine)
        with pytest.raises(UnknownEntryError):
            house.memory.erase(theirs, reason="user_request", **mine)
        with pytest.raises(UnknownEntryError):
            house.memory.erase(theirs, reason="user_request", tenant="acme")
        with pytest.raises(UnknownSelectionError):
            house.memory.replay("s", "plan", **replay_of())
        assert house.memory.erase_session("s", tenant="acme").erased == 0
        assert house.memory.erase_owner(tenant="acme", owner="eve", reason="gone").erased == 0
        found = house.memory.recall(a_query("canarybird"), a_context())
        assert found.entries == ()

        told = assert_agreement(house.store, all_have_vectors=False)
    assert not told[theirs].erased


def test_a_port_shows_no_row_of_another_whatever_it_is_asked(place: StoreSettings) -> None:
    with open_house(place) as house:
        theirs = house.memory.remember(an_entry("a canarybird", tenant="evil", owner="eve"))
        store, ids = house.store, [theirs]
        active = store.indexes.active()
        assert active is not None

        with store.transactions.acting_for("acme", "ana"):
            assert store.vault.current(ids) == store.vault.indexed(ids) == {}
            assert store.vault.history(theirs) == []
            assert store.vault.erase(theirs) == []
            assert store.sparse.query("canarybird", 5) == []
            store.sparse.delete(theirs)
            store.indexes.store(active).delete(theirs)
            assert store.indexes.store(active).vectors(ids) == {}
            assert (store.sparse.count(), store.indexes.store(active).count()) == (0, 0)
            assert store.log.follow(after_position=0, limit=9) == []
            for refused in (
                lambda: store.vault.scopes(tenant="evil", owners=None),
                lambda: store.vault.entries_of(tenant="evil", owner="eve"),
                lambda: store.sparse.query("canarybird", 5, {"tenant": "evil"}),
                lambda: store.sessions.erase_owner(tenant="evil", owner="eve"),
            ):
                with pytest.raises(InvalidInputError, match="acted for"):
                    refused()

        assert_agreement(store, all_have_vectors=False)


# -- Behind a pooler -----------------------------------------------------------


@pytest.fixture(params=["a relay", "PgBouncer"])
def pooler(request: pytest.FixtureRequest, place: StoreSettings) -> Iterator[Pooler]:
    assert place.dsn_file is not None
    dsn = place.dsn_file.read_text()
    if request.param == "a relay":
        relay = PoolingRelay(dsn)
        yield relay
        relay.close()
        return
    if pgbouncer.program() is None:
        # It comes from no index of Python's packages; the relay does the same to us.
        pytest.skip("PgBouncer isn't installed on this machine")
    with pgbouncer.bouncing(dsn) as bouncer:
        yield bouncer


@pytest.fixture
def pooled(place: StoreSettings, pooler: Pooler, tmp_path: Path) -> StoreSettings:
    changes: dict[str, Any] = {"pooler": True}
    for name in ("dsn_file", "reader_dsn_file"):
        direct = getattr(place, name).read_text()
        changes[name] = tmp_path / f"pooled.{name}"
        changes[name].write_text(pooler.through(direct))
    return place.model_copy(update=changes)


def test_it_works_where_each_transaction_gets_another_session(
    pooled: StoreSettings, pooler: Pooler
) -> None:
    """Behind PgBouncer in transaction mode, and a relay of the tests that stands in for it."""
    with open_house(pooled) as house:

        def work(number: int) -> None:
            owner = f"owner {number % 2}"
            for step in range(3):
                text = f"common {number}.{step}"
                entry_id = house.memory.remember(an_entry(text, owner=owner))
                house.memory.correct(entry_id, text=f"{text} !", reason="edited", tenant="acme")
                query = a_query("common", owner=owner)
                house.memory.build_pack(
                    f"s{number}", f"{step}", query, a_context(), token_budget=300
                )
                house.memory.replay(f"s{number}", f"{step}", **replay_of())

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

        entries = assert_agreement(house.store, common_word="common")
        findings = {one[0]: one for one in house.memory.check_up()}

    assert len(entries) == 12
    if isinstance(pooler, PoolingRelay):
        assert len(set(pooler.handed_out)) > 2
    assert findings["pooler"][1:3] == (True, "one stands between")


def test_the_check_up_tells_who_forgot_to_say_that_there_is_a_pooler(
    pooled: StoreSettings,
) -> None:
    with _opened(pooled.model_copy(update={"pooler": False})) as memory:
        findings = {one[0]: one for one in memory.check_up()}

    assert not findings["pooler"][1]
    assert "store.pooler" in findings["pooler"][3]
