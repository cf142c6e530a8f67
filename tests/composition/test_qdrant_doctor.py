"""The check-up tells of a Qdrant that is set up and can't be used, before anything is there."""

import pytest
from tests.composition.shell import Shell

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__URL", NOBODY)


@pytest.mark.usefixtures("nobody_there")
def test_doctor_says_that_qdrant_is_away_before_anything_is_remembered(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("init")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__BACKEND", "qdrant")

    done = shell("doctor")

    assert done.status == 1
    assert f"qdrant at {NOBODY} is unavailable" in " ".join(done.out.split())


@pytest.mark.usefixtures("nobody_there")
def test_doctor_says_that_qdrant_is_away_before_vectors_are_brought_there(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("remember", "the invoice service")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__BACKEND", "qdrant")

    done = shell("doctor")

    assert done.status == 1
    assert "can't be used" in " ".join(done.out.split())


@pytest.mark.usefixtures("nobody_there")
def test_doctor_does_not_mind_a_qdrant_that_is_not_used(shell: Shell) -> None:
    shell("remember", "the invoice service")

    done = shell("doctor")

    assert done.status == 0
    assert "qdrant" not in done.out


def test_an_erasure_that_waits_for_qdrant_says_so(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__BACKEND", "qdrant")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__PATH", str(shell.folder / "vectors"))
    entry_id = shell.json("remember", "the invoice service")["entry_id"]
    shell("project")
    monkeypatch.delenv("REMEMBRANCER_VECTOR_STORE__PATH")
    monkeypatch.setenv("REMEMBRANCER_VECTOR_STORE__URL", NOBODY)

    erased, looked = shell("erase", entry_id, "--reason", "user_request"), shell("doctor")

    for done in (erased, looked):
        assert done.status == 1
        assert "where they are kept: `remembrancer project`" in " ".join(done.out.split())
