"""Entries in PostgreSQL with row security, their vectors in Qdrant."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adapters.postgres_server import server
from tests.application.house import a_context, a_query, an_entry, replay_of

from remembrancer.composition import Settings, production
from remembrancer.composition.settings import StoreSettings, VectorStoreSettings
from remembrancer.domain import RecallMode


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    with server().database() as database:
        monkeypatch.setenv("APP_DSN", database.app)
        monkeypatch.setenv("READER_DSN", database.auditor)
        yield Settings(
            store=StoreSettings(
                backend="postgres", dsn_variable="APP_DSN", reader_dsn_variable="READER_DSN"
            ),
            vector_store=VectorStoreSettings(
                backend="qdrant", path=tmp_path / "qdrant", timeout_s=60
            ),
        )


def test_entries_of_several_tenants_are_carried_corrected_and_erased(settings: Settings) -> None:
    with production(settings) as memory:
        ours, gone = memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])
        memory.remember_many(
            [an_entry("invoice three", owner="ben"), an_entry("invoice", tenant="acme-corp")]
        )
        memory.project()
        memory.correct(ours, text="invoice changed", reason="edited", tenant="acme", owner="ana")
        memory.erase(gone, reason="user_request", tenant="acme", owner="ana")
        stands = memory.project()
        found = memory.recall(a_query(), a_context())
        status = memory.status()

    assert (stands.behind, stands.waiting_vectors, stands.waiting_erasures) == (0, 0, 0)
    assert (found.mode, [one.entry_id for one in found.entries]) == (RecallMode.HYBRID, [ours])
    assert (status.versions_by_words, status.versions_by_vector) == (4, 4)


def test_vectors_move_there_and_back(settings: Settings) -> None:
    local = settings.model_copy(update={"vector_store": VectorStoreSettings()})
    with production(local) as memory:
        memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
        before = memory.recall(a_query(), a_context())
        pack = memory.build_pack("session", "plan", a_query(), a_context(), token_budget=500)

    with production(settings) as memory:
        there = memory.reindex(drop_retired=True)
        after = memory.recall(a_query(), a_context())
        again = memory.replay("session", "plan", **replay_of())
        back = memory.reindex(place="local", drop_retired=True)

    assert (there.index.place, there.vectors) == ("qdrant", 5)
    assert (back.index.place, back.vectors) == ("local", 5)
    assert (after.mode, after.entries) == (before.mode, before.entries)
    assert again.digest == pack.digest
