"""A memory whose vectors are in Qdrant: the same recall, the same packs, blind replay."""

import base64
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from dependency_injector import providers
from tests.application.house import Forbidden, a_context, a_query, an_entry, replay_of
from tests.composition.shell import Shell

from remembrancer.application.projection import Projected
from remembrancer.composition import Settings, production, vector_places
from remembrancer.composition.carrier import Carrier
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import StoreSettings, VectorStoreSettings
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain import RecallMode
from remembrancer.domain.errors import InvalidInputError, SettingsError, StoreUnavailableError

NOBODY = "http://127.0.0.1:1"


def in_qdrant(folder: Path, **changes: Any) -> Settings:
    """Return settings of a memory whose vectors are in a folder of Qdrant's."""
    plain: dict[str, Any] = {"backend": "qdrant", "path": folder / "qdrant", "timeout_s": 60}
    return Settings(
        store=StoreSettings(path=folder / "memory.db"),
        vector_store=VectorStoreSettings(**plain | changes),
    )


def in_the_store(folder: Path) -> Settings:
    """Return settings of a memory that keeps its vectors itself."""
    return Settings(store=StoreSettings(path=folder / "memory.db"))


def with_qdrant_down(folder: Path) -> Settings:
    """Return settings of a memory whose vectors are with a server that isn't there."""
    return in_qdrant(folder, path=None, url=NOBODY)


# -- Settings ----------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {"backend": "qdrant"},
        {"backend": "qdrant", "url": NOBODY, "path": "qdrant"},
        {"backend": "qdrant", "url": "qdrant:6333"},
        {"backend": "qdrant", "url": "ftp://qdrant"},
        {"backend": "qdrant", "url": "https://user:secret@qdrant"},
        {"backend": "qdrant", "url": "https://qdrant?api-key=secret"},
        {"backend": "qdrant", "url": "http://qdrant:6333", "api_key_variable": "KEY"},
        {"backend": "pinecone"},
        {"prefix": "a b"},
        {"prefix": "a/b"},
        {"timeout_s": 0},
        {"quantization": "product"},
        {"oversampling": float("nan")},
        {"read_consistency": "some"},
        {"read_consistency": 0},
        {"shards": 0},
        {"api_key": "secret"},
    ],
    ids=str,
)
def test_what_breaks_its_bounds_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="VectorStoreSettings") as caught:
        VectorStoreSettings.parse(values)

    assert "secret" not in str(caught.value).replace("no key", "")


@pytest.mark.parametrize(
    "values",
    [
        {"backend": "qdrant", "url": "https://qdrant:6333", "api_key_variable": "KEY"},
        {"backend": "qdrant", "url": "http://localhost:6333", "api_key_file": "key"},
        {"backend": "qdrant", "url": "http://[::1]:6333", "grpc": "true", "shards": "4"},
        {"backend": "local", "url": "https://qdrant:6333"},
        {"backend": "qdrant", "path": "qdrant", "read_consistency": "2"},
        {"backend": "qdrant", "path": "qdrant", "read_consistency": "quorum"},
    ],
    ids=str,
)
def test_what_keeps_them_is_taken(values: dict[str, Any]) -> None:
    assert VectorStoreSettings.parse(values).backend == values["backend"]


# -- The whole ---------------------------------------------------------------


def test_nothing_changes_for_a_host(tmp_path: Path) -> None:
    texts = ["The invoice service retries.", "Cash is kept in a safe.", "Old fish."]
    answers = []
    for settings in (in_the_store(tmp_path / "a"), in_qdrant(tmp_path / "b")):
        settings.store.path.parent.mkdir()
        with production(settings) as memory:
            memory.remember_many([an_entry(text, idempotency_key=text) for text in texts])
            memory.project()
            answers.append(memory.recall(a_query("storage of money"), a_context()))
            memory.build_pack("session", "plan", a_query("money"), a_context(), token_budget=500)

    one, other = answers
    assert one.mode is other.mode is RecallMode.HYBRID
    assert [(entry.entry_id, entry.ranks) for entry in one.entries] == [
        (entry.entry_id, entry.ranks) for entry in other.entries
    ]


def test_without_its_client_qdrant_cannot_be_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_places, "find_spec", lambda _name: None)

    with pytest.raises(SettingsError, match="qdrant"):
        production(in_qdrant(tmp_path))


def test_closing_carries_what_waits(tmp_path: Path) -> None:
    with production(in_qdrant(tmp_path)) as memory:
        memory.remember(an_entry())

    with production(in_qdrant(tmp_path)) as memory:
        stands = memory.status()

        assert (stands.behind, stands.waiting_vectors, stands.versions_by_vector) == (0, 0, 1)


def test_a_memory_opens_writes_recalls_and_closes_while_qdrant_is_down(tmp_path: Path) -> None:
    with production(with_qdrant_down(tmp_path)) as memory:
        entry_id = memory.remember(an_entry())
        found = memory.recall(a_query(), a_context())
        erasure = memory.erase(entry_id, reason="user_request")
        stands = memory.status()

        assert (len(found.entries), found.mode) == (1, RecallMode.SPARSE)
        assert erasure.pending  # Nobody can say that nothing of it was carried there.
        assert stands.dense == "vector_index_unavailable"
        with pytest.raises(StoreUnavailableError):
            memory.project()


def test_a_memory_without_the_address_goes_by_words_until_it_is_reindexed(
    tmp_path: Path,
) -> None:
    with production(in_qdrant(tmp_path)) as memory:
        memory.remember(an_entry())

    with production(in_the_store(tmp_path)) as memory:
        before = memory.recall(a_query(), a_context())
        memory.reindex()
        after = memory.recall(a_query(), a_context())

    assert (before.mode, before.mode_reason) == (RecallMode.SPARSE, "vector_index_unavailable")
    assert after.mode is RecallMode.HYBRID


def test_nothing_of_an_erased_entry_is_left_in_any_file(tmp_path: Path) -> None:
    """Case 13."""
    with production(in_qdrant(tmp_path)) as memory:
        entry_id = memory.remember(an_entry("the canarybird sings", subjects=("canarysubject",)))
        memory.remember(an_entry("invoice"))
        memory.project()
        container = memory._container
        [index] = container.indexes().all()
        vector = array("f", container.indexes().store(index).vectors([entry_id])[entry_id])
        before = bytes_under(tmp_path)

        erasure = memory.erase(entry_id, reason="user_request")

        after = bytes_under(tmp_path)
        numbers = base64.b64encode(vector.tobytes())
        assert not erasure.pending
        assert numbers in before
        for canary in (numbers, vector.tobytes(), b"canarybird", b"canarysubject"):
            assert canary not in after


# -- Replay ------------------------------------------------------------------


def _recorded(settings: Settings) -> str:
    with production(settings) as memory:
        ids = memory.remember_many([an_entry(f"invoice {number}") for number in range(6)])
        memory.project()
        pack = memory.build_pack(
            "session", "plan", a_query(limit=4), a_context(), token_budget=500
        )
        chosen = {
            entry.entry_id
            for entry in memory.select("session", "plan", a_query(limit=4), a_context()).entries
        }
        for entry_id in set(ids) - chosen:
            memory.correct(entry_id, text="changed", reason="edited")
        return pack.digest


def _replayed_blind(settings: Settings) -> str:
    with production(settings) as memory:
        container = memory._container
        for part in ("indexes", "embedders", "projection"):
            getattr(container, part).override(providers.Object(Forbidden(part)))
        try:
            pack = memory.replay("session", "plan", **replay_of())
        finally:
            for part in ("indexes", "embedders", "projection"):
                getattr(container, part).reset_override()
        assert not pack.differences
        return pack.digest


def test_what_was_recorded_on_the_stores_vectors_replays_with_qdrant_down(
    tmp_path: Path,
) -> None:
    """Case 12."""
    digest = _recorded(in_the_store(tmp_path))

    assert _replayed_blind(with_qdrant_down(tmp_path)) == digest


def test_what_was_recorded_with_qdrant_replays_without_it(tmp_path: Path) -> None:
    """Case 12."""
    digest = _recorded(in_qdrant(tmp_path))

    assert _replayed_blind(in_the_store(tmp_path)) == digest
    assert _replayed_blind(with_qdrant_down(tmp_path)) == digest


def test_a_committed_selection_stays_though_the_vectors_move(tmp_path: Path) -> None:
    with production(in_the_store(tmp_path)) as memory:
        memory.remember_many([an_entry(f"invoice {number}") for number in range(6)])
        before = memory.select("session", "plan", a_query(), a_context())

    with production(in_qdrant(tmp_path)) as memory:
        memory.reindex(drop_retired=True)
        memory.remember(an_entry("invoice invoice"))
        memory.project()

        assert memory.select("session", "plan", a_query(), a_context()) == before


# -- The thread --------------------------------------------------------------


class Carried:
    """Stands for a projection: says when it was asked."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.asked = Event()
        self.times = 0

    def waits(self) -> bool:
        return True

    def __call__(self, *, go_on: Callable[[], bool]) -> Projected:
        self.times += 1
        self.asked.set()
        if self.fails:
            raise StoreUnavailableError(store="qdrant", problem="is away")
        go_on()
        return Projected(index=None, end=0)


def test_a_carrier_carries_at_once_and_when_it_is_woken() -> None:
    carried = Carried()
    carrier = Carrier(carried, monotonic=lambda: 0.0)
    carrier.start()
    assert carried.asked.wait(5)
    carried.asked.clear()

    carrier.wake()

    assert carried.asked.wait(5)
    carrier.stop()


def test_a_carrier_carries_the_rest_as_it_stops() -> None:
    carried = Carried()
    carrier = Carrier(carried, monotonic=lambda: 0.0)
    carrier.start()
    assert carried.asked.wait(5)
    times = carried.times

    carrier.stop()

    assert carried.times > times


def test_a_carrier_lets_an_index_be_that_does_not_answer() -> None:
    carried = Carried(fails=True)
    carrier = Carrier(carried, monotonic=lambda: 0.0)
    carrier.start()
    assert carried.asked.wait(5)

    for _ in range(50):
        carrier.wake()
    carrier.stop()

    assert carried.times == 1


def test_a_memory_that_may_only_be_read_carries_nothing(tmp_path: Path) -> None:
    with production(in_qdrant(tmp_path)) as memory:
        memory.remember(an_entry())
    settings = in_qdrant(tmp_path)
    read_only = replace_store(settings, read_only=True)

    with production(read_only) as memory:
        assert memory._container.carrier() is None
        assert memory.recall(a_query(), a_context()).mode is RecallMode.HYBRID


def replace_store(settings: Settings, **changes: Any) -> Settings:
    """Return settings with another store's."""
    store = StoreSettings(**dict(settings.store) | changes)
    return settings.model_copy(update={"store": store})


# -- The command line --------------------------------------------------------


@pytest.fixture
def far_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__BACKEND", "qdrant")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__PATH", "qdrant")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__TIMEOUT_S", "60")
    return shell


def test_commands_work_as_ever(far_shell: Shell) -> None:
    far_shell("remember", "the invoice service")

    stands = far_shell.json("project")
    found = far_shell.json("recall", "invoice")

    assert (stands["behind"], stands["index"]["place"]) == (0, "qdrant")
    assert found["mode"] == "hybrid"
    assert far_shell("doctor").status == 0
    assert "positions behind the log" in far_shell("status").out
    assert "Index 1 in qdrant is at position 1 of 1" in far_shell("project").out


def test_vectors_are_brought_back_by_command(far_shell: Shell) -> None:
    far_shell("remember", "the invoice service")

    data = far_shell.json("reindex", "--to", "local", "--drop-retired")

    assert (data["index"]["place"], data["vectors"]) == ("local", 1)
    assert "Nothing to carry" in far_shell("project").out


@pytest.mark.parametrize("name", ["qdrant", "elsewhere"])
def test_a_place_that_is_not_set_up_is_wrong_use(shell: Shell, name: str) -> None:
    shell("remember", "the invoice service")

    assert shell("reindex", "--to", name).status == 2


def test_doctor_says_that_qdrant_is_away(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__BACKEND", "qdrant")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__URL", NOBODY)
    shell("remember", "the invoice service")

    done = shell("doctor")

    assert done.status == 1
    assert "doesn't answer" in " ".join(done.out.split())


def test_the_facade_has_a_twin_for_carrying() -> None:
    assert replace(Projected(index=None, end=3)).behind == 0
    assert Remembrancer.aproject.__name__ == "aproject"
