"""Commands that tell what was recorded: on a file that nobody may write, too."""

from pathlib import Path
from uuid import UUID

import apsw
import pytest
from tests.composition.remote_world import WHO, a_context, a_query, open_world
from tests.composition.shell import Result, Shell

from remembrancer.composition import embedded
from remembrancer.contracts.loopback_provider import honest
from remembrancer.contracts.spending import FIRST_ID, Spender
from remembrancer.domain.entry import MemoryEntry


@pytest.fixture
def entry(shell: Shell) -> str:
    """Return the id of a corrected entry that a session got."""
    found = shell.json("remember", "the invoice service retries", "--scope", "notes")
    shell("pack", "s-1", "plan", "invoice", "--budget", "900", "--item", "0:rules:Be brief.")
    entry_id: str = found["entry_id"]
    shell("correct", entry_id, "--text", "it retries twice", "--reason", "outdated")
    return entry_id


def flat(done: Result) -> str:
    """Return what was shown without the wrapping of tables."""
    return " ".join(done.out.split())


def test_an_entry_is_explained_by_its_history(shell: Shell) -> None:
    entry_id = shell.json("remember", "the invoice service")["entry_id"]

    done = shell("explain", entry_id)

    assert done.status == 2
    assert done.err.endswith("an entry's life is told by `remembrancer history`\n")


def test_explain_tells_what_was_selected_and_what_has_changed(shell: Shell, entry: str) -> None:
    done, data = shell("explain", "s-1", "plan"), shell.json("explain", "s-1", "plan")

    assert done.status == 0
    assert "s-1/plan of local/me: 1 of 1 candidate selected for cli" in done.out
    assert "corrected: version 2 (outdated)" in flat(done)
    [one] = data["entries"]
    assert (one["entry_id"], one["version"], one["ranks"]["sparse_rank"]) == (entry, 1, 1)
    assert [change["kind"] for change in one["changes"]] == ["corrected"]
    [pack] = data["packs"]
    assert (pack["number"], pack["host_items"], pack["host_items_kept"]) == (1, ["rules"], True)
    assert pack["included"] == ["rules", entry]


@pytest.mark.usefixtures("entry")
def test_explain_shows_no_text(shell: Shell) -> None:
    done = shell("explain", "s-1", "plan", "--json")

    assert "retries" not in done.out


def test_a_text_that_somebody_removed_is_a_finding(shell: Shell, entry: str) -> None:
    connection = apsw.Connection(str(shell.folder / "memory.db"))
    connection.execute("UPDATE original SET index_id = NULL WHERE version = 1")
    connection.close()

    explained, told = shell("explain", "s-1", "plan"), shell("history", entry)

    assert (explained.status, told.status) == (1, 1)
    assert "missing: the vault doesn't have its text" in flat(explained)
    assert "missing" in told.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "nobody", "plan"], "nothing was selected"),
        (["explain", "s-1"], "STAGE: must follow the session"),
        (["explain", str(UUID(int=7))], f"reservation {UUID(int=7)} is unknown here"),
        (["history", str(UUID(int=7))], f"entry {UUID(int=7)} is unknown here"),
        (["history", "x"], "entry id: is not a UUID"),
        (["timeline", "--limit", "0"], "limit: must be a whole number from 1"),
        (["timeline", "--session", ""], "session: must not be blank"),
    ],
)
def test_wrong_use_is_told(shell: Shell, arguments: list[str], said: str) -> None:
    shell("init")

    done = shell(*arguments)

    assert (done.status, said in done.err) == (2, True)


def test_history_shows_texts_to_who_may_read_them(shell: Shell, entry: str) -> None:
    done, data = shell("history", entry), shell.json("history", entry)

    assert done.status == 0
    assert "the invoice service retries" in done.out
    assert "outdated" in done.out
    assert [one["text"] for one in data["versions"]] == [
        "the invoice service retries", "it retries twice"]  # fmt: skip


@pytest.mark.parametrize(
    "options", [["--no-text"], ["--scope", "elsewhere"], ["--ceiling", "public"]], ids=str
)
def test_history_shows_no_text_to_others(shell: Shell, entry: str, options: list[str]) -> None:
    done = shell("history", entry, *options)

    assert done.status == 0
    assert "retries" not in done.out
    assert ("--scope" in done.err) == (options != ["--no-text"])


def test_history_of_an_erased_entry_tells_when_and_why(shell: Shell, entry: str) -> None:
    shell("erase", entry, "--reason", "requested")

    done, data = shell("history", entry), shell.json("history", entry)

    assert "(requested)." in done.out
    assert "retries" not in done.out
    assert {one["text_state"] for one in data["versions"]} == {"erased"}


def test_timeline_tells_events_in_words(shell: Shell, entry: str) -> None:
    done, data = shell("timeline"), shell.json("timeline")

    assert done.status == 0
    assert "corrected (outdated), version 2 now" in flat(done)
    assert [one["what"] for one in data["events"]] == [
        "entry_remembered", "entries_selected", "pack_assembled", "entry_corrected"]  # fmt: skip
    assert data["events"][0]["stream"] == str(MemoryEntry.create_id("local", UUID(entry)))


@pytest.mark.usefixtures("entry")
def test_timeline_goes_page_by_page(shell: Shell) -> None:
    done, first = shell("timeline", "--limit", "2"), shell.json("timeline", "--limit", "2")
    rest = shell.json("timeline", "--after", str(first["next_after"]))
    newest = shell.json("timeline", "--limit", "1", "--newest")

    assert f"--after {first['next_after']}" in done.out
    assert len(first["events"] + rest["events"]) == 4
    assert newest["events"] == rest["events"][-1:]


@pytest.mark.usefixtures("entry")
def test_timeline_of_a_session_and_of_nobody(shell: Shell) -> None:
    session = shell.json("timeline", "--session", "s-1")
    nobody = shell("timeline", "--owner", "nobody")

    assert {one["about"] for one in session["events"]} == {"s-1/plan"}
    assert nobody.out == "Nothing was recorded of local/nobody there.\n"


def test_nothing_is_written(shell: Shell, entry: str) -> None:
    memory = shell.folder / "memory.db"
    memory.chmod(0o400)
    before = memory.read_bytes()

    for arguments in (["explain", "s-1", "plan"], ["history", entry], ["timeline"]):
        assert shell(*arguments).status == 0

    assert memory.read_bytes() == before


def test_a_reservation_is_explained_from_its_request_to_its_cache(tmp_path: Path) -> None:
    with open_world(tmp_path, honest()) as world:
        world.admit()
        memory = world.open()
        report = memory.prepare([a_query("which rule?")], a_context(), **WHO)
        assert report.reservation_id is not None

        found = memory.explain_reservation(report.reservation_id, **WHO)

    assert [step.state.value for step in found.steps] == ["pending", "settled"]
    assert found.reservation.charged_quanta == report.charged_quanta
    [fed] = found.fed
    assert (fed.vectors, fed.surface) == (1, a_context().surface)


def test_a_reservation_is_shown_by_its_id_alone(shell: Shell) -> None:
    reservation_id = _spent(shell)

    done, data = (shell("explain", reservation_id), shell.json("explain", reservation_id))

    assert done.status == 0
    assert "settled" in done.out
    assert "was at 0.000010 of 0.001000 USD, request 1 of 100" in done.out
    assert (data["state"], data["charged_quanta"], len(data["steps"])) == ("settled", 3, 2)


def _spent(shell: Shell) -> str:
    with embedded(shell.folder / "memory.db") as memory:
        spender = Spender(memory._container.store().ledger, tenant="local", owner="me")
        spender.admit(FIRST_ID, charge=10)
        spender.settle(FIRST_ID, charge=3)
    return str(FIRST_ID)


def test_nothing_is_said_to_be_forbidden_once_nothing_is_left(shell: Shell) -> None:
    entry_id = shell.json("remember", "some words", "--scope", "elsewhere")["entry_id"]
    before = shell("history", entry_id)
    shell("erase", entry_id, "--reason", "user_request")

    after = shell("history", entry_id)

    assert "isn't permitted" in before.err
    assert (after.status, after.err) == (0, "")
