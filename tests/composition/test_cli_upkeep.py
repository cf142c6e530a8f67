"""``status``, ``doctor`` and ``reindex`` on the command line."""

from typing import Any

import apsw
import pytest
from tests.composition.shell import Shell
from tests.composition.test_cli_gates import TOML

from remembrancer.application.index_building import IndexBuilding


@pytest.fixture
def filled(shell: Shell) -> Shell:
    for text in ("the invoice service", "the storage of words"):
        shell("remember", text)
    return shell


def test_status_counts(filled: Shell) -> None:
    done, data = filled("status"), filled.json("status")

    assert done.status == 0
    assert "versions found by vector" in done.out
    assert {key: data[key] for key in ("entries", "events", "dense")} == {
        "entries": 2,
        "events": 2,
        "dense": "ready",
    }
    [index] = data["indexes"]
    assert (index["state"], index["embedding_tuple"]["dimensions"]) == ("active", 256)


def test_status_says_that_the_stores_own_index_is_in_step_with_the_log(filled: Shell) -> None:
    told = filled("status").out

    [row] = [line for line in told.splitlines() if "wordllama" in line]
    assert "in step" in row


def test_doctor_finds_a_damaged_file_and_leaves_it_alone(filled: Shell) -> None:
    path = filled.folder / "memory.db"
    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE thing (number INTEGER NOT NULL); INSERT INTO thing VALUES (1)"
    )
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = ?)"
        " WHERE name = 'thing'",
        ("stored_events",),
    )
    connection.close()
    before = path.read_bytes()

    done = filled("doctor", "--json")

    findings = {one["what"]: one for one in done.data}
    assert (done.status, list(findings)) == (1, ["packages", "file"])
    assert findings["file"]["found"].startswith("damaged: ")
    assert path.read_bytes() == before


def test_doctor_finds_nothing_wrong(filled: Shell) -> None:
    done, data = filled("doctor"), filled.json("doctor")

    assert done.status == 0
    assert all(one["ok"] for one in data)
    assert "wordllama" in done.out


def test_the_configured_space_is_built_beside_the_old(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMEMBRANCER_EMBEDDER__DIMENSIONS", "64")

    done = filled("reindex")

    assert done.status == 0
    assert "Index 2 answers now: 2 vectors of" in done.out
    assert "(64 dimensions)" in done.out
    assert "Retired and kept: index 1" in done.out
    found = filled.json("recall", "invoice")
    assert found["mode"] == "hybrid"
    assert found["embedding_tuple"]["dimensions"] == 64


def test_retired_indexes_can_be_dropped_and_words_rebuilt(filled: Shell) -> None:
    data = filled.json("reindex", "--words", "--drop-retired")

    assert (data["vectors"], data["retired"], data["resumed_from"]) == (2, [], 0)
    assert data["index"]["state"] == "active"
    assert len(filled.json("status")["indexes"]) == 1


def test_without_a_model_nothing_can_be_built(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMEMBRANCER_EMBEDDER__PROVIDER", "none")

    done = filled("reindex")
    found, checked = filled.json("recall", "invoice"), filled("doctor")

    assert (done.status, "embedder" in done.err) == (2, True)
    assert (found["mode"], found["mode_reason"]) == ("sparse", "no_embedder_for_index")
    assert checked.status == 1
    assert "reindex" in checked.out


def test_retired_indexes_can_be_dropped_alone(shell: Shell) -> None:
    shell("remember", "some words")
    shell("reindex")

    done, again = (shell("reindex", "--only-drop-retired") for _ in range(2))

    assert (done.out, again.out) == ("Destroyed: index 1.\n", "There is none to drop.\n")
    assert [one["number"] for one in shell.json("status")["indexes"]] == [2]


def test_an_index_whose_building_broke_off_can_be_given_up(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(IndexBuilding, "switched", breaks_off)
        interrupted = filled("reindex")
    looked = filled("doctor")
    done = filled("reindex", "--drop-unfinished")

    assert (interrupted.status, looked.status) == (130, 1)
    assert done.out == "Destroyed: index 2.\n"
    assert filled("doctor").status == 0


QDRANT_TOML = """
[vector_store]
backend = "qdrant"
url = "https://127.0.0.1:1"
api_key_variable = "NO_SUCH_KEY"
"""


@pytest.mark.parametrize(
    ("toml", "place"),
    [
        (QDRANT_TOML, "variable NO_SUCH_KEY"),
        (QDRANT_TOML.replace("variable", "file"), "file NO_SUCH_KEY"),
        (TOML.replace("[pricing]", 'api_key_variable = "NO_KEY"\n[pricing]'), "variable NO_KEY"),
    ],
    ids=["of Qdrant", "of Qdrant in a file", "of the provider"],
)
def test_a_key_that_is_named_and_missing_is_told(filled: Shell, toml: str, place: str) -> None:
    (filled.folder / "remembrancer.toml").write_text(toml)

    shown, data, looked = filled("status"), filled.json("status"), filled("doctor")

    assert f"Missing: setting {place}: " in shown.out
    assert [one.partition(": ")[0] for one in data["missing_secrets"]] == [f"setting {place}"]
    assert looked.status == 1
    assert f"setting {place}: " in " ".join(looked.out.split())


def test_a_key_that_is_there_is_not_told(filled: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_SUCH_KEY", "canary-key")
    (filled.folder / "remembrancer.toml").write_text(QDRANT_TOML)

    shown, data, looked = filled("status"), filled.json("status"), filled("doctor")

    assert data["missing_secrets"] == []
    assert "canary" not in shown.out + looked.out


def test_status_tells_of_a_remote_provider(shell: Shell) -> None:
    shell("init")
    (shell.folder / "remembrancer.toml").write_text(TOML)

    assert shell.json("status")["provider"] == "configured, 0 of 12 gates are met"
    assert "remote provider" in shell("status").out


def test_reindexing_without_the_admission_says_whose_vectors_these_are(filled: Shell) -> None:
    (filled.folder / "remembrancer.toml").write_text(TOML)

    told = " ".join(filled("reindex").out.split())

    assert (
        "(wordllama) made these vectors, not the provider: it is configured, 0 of 12 gates are met"
        in told
    )
