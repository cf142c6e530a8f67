"""``init``, ``remember``, ``correct`` and ``erase`` on the command line."""

from uuid import UUID

import pytest
from tests.composition.shell import Shell

from remembrancer.composition import embedded

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def _remembered(shell: Shell, *arguments: str) -> str:
    return str(shell.json("remember", *arguments)["entry_id"])


def test_init_makes_a_memory_and_says_so(shell: Shell) -> None:
    first, again = shell("init"), shell("init")

    assert (first.status, first.out) == (0, "memory.db is ready: 0 entries.\n")
    assert again == first
    assert shell.json("init") == {"path": "memory.db", "entries": 0}


def test_remember_prints_the_id_alone(shell: Shell) -> None:
    done = shell("remember", "some words")

    assert done.status == 0
    assert UUID(done.out.strip())
    assert done.out == done.out.strip() + "\n"


def test_everything_about_an_entry_can_be_said(shell: Shell) -> None:
    entry_id = _remembered(
        shell,
        "some words",
        *("--kind", "decision", "--subject", "ana", "--subject", "bob"),
        *("--meta", "path=a.md", "--meta", "url=x=y", "--tenant", "t", "--owner", "o"),
        *("--scope", "a/b", "--sensitivity", "PUBLIC"),
    )

    [found] = shell.json("recall", "words", "--tenant", "t", "--owner", "o", "--scope", "a")[
        "entries"
    ]

    assert found["entry_id"] == entry_id
    assert (found["kind"], found["scope"], found["sensitivity"]) == ("decision", "a/b", "public")
    assert found["subjects"] == ["ana", "bob"]
    assert found["metadata"] == {"path": "a.md", "url": "x=y"}


def test_a_key_makes_a_retry_safe(shell: Shell) -> None:
    first = _remembered(shell, "some words", "--key", "k")
    second = _remembered(shell, "some words", "--key", "k")
    conflict = shell("remember", "other words", "--key", "k", "--json")

    assert first == second
    assert (conflict.status, conflict.data["error"]["type"]) == (2, "IdempotencyConflictError")


def test_a_text_may_come_from_standard_input(shell: Shell) -> None:
    shell("remember", "-", stdin="naïve café\n\tand more".encode())

    [found] = shell.json("recall", "café")["entries"]

    assert found["text"] == "naïve café\n\tand more"


@pytest.mark.parametrize("stdin", [b"\xff\xfe", b"caf\xe9"], ids=str)
def test_standard_input_must_be_utf8(shell: Shell, stdin: bytes) -> None:
    done = shell("remember", "-", stdin=stdin)

    assert done.status == 2
    assert done.err == "error: standard input: isn't UTF-8\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["", "--kind", "x"], "text: must not be blank"),
        (["-"], "text: must not be blank"),
        (["half \udcff"], "text: holds a lone surrogate"),
        (["x" * 1_048_577], "text: is longer than 1048576 UTF-8 bytes; split it"),
        (["x", "--scope", "a//b"], "scope: must be names joined by single slashes"),
        (["x", "--sensitivity", "secret"], "sensitivity: must be one of public, internal"),
        (["x", "--meta", "path"], "--meta: must be key=value"),
        (["x", "--subject", "a\nb"], "--subject: must not hold control characters"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_cannot_be_remembered_is_said(shell: Shell, arguments: list[str], told: str) -> None:
    done = shell("remember", *arguments)

    assert done.status == 2
    assert done.out == ""
    assert told in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_correction_counts_versions(shell: Shell) -> None:
    entry_id = _remembered(shell, "some words", "--subject", "ana")

    done = shell("correct", entry_id, "--text", "other words", "--reason", "outdated")
    again = shell.json("correct", entry_id, "--text", "other words", "--reason", "outdated")

    assert (done.status, done.out) == (0, f"{entry_id} is at version 2.\n")
    assert again == {"entry_id": entry_id, "version": 2}
    [found] = shell.json("recall", "words")["entries"]
    assert (found["text"], found["subjects"]) == ("other words", ["ana"])


def test_a_correction_of_nothing_is_wrong_use(shell: Shell) -> None:
    entry_id = shell.json("remember", "some words")["entry_id"]

    done = shell("correct", entry_id, "--reason", "outdated")

    assert (done.status, "nothing to change was given" in done.err) == (2, True)


def test_labels_can_be_corrected_alone(shell: Shell) -> None:
    entry_id = _remembered(shell, "some words", "--subject", "ana", "--meta", "a=b")

    shell.json(
        "correct",
        entry_id,
        *("--reason", "moved", "--scope", "notes/b", "--kind", "decision"),
        *("--sensitivity", "public", "--subject", "bob", "--meta", "c=d"),
    )

    [found] = shell.json("recall", "words")["entries"]
    assert (found["text"], found["kind"], found["scope"]) == ("some words", "decision", "notes/b")
    assert (found["subjects"], found["metadata"]) == (["bob"], {"c": "d"})


def test_erasing_says_what_is_left(shell: Shell) -> None:
    entry_id = _remembered(shell, "some words")

    done = shell("erase", entry_id, "--reason", "user_request")
    again = shell("erase", entry_id, "--reason", "user_request")

    assert (done.status, again.status) == (0, 0)
    assert done.out == f"{entry_id} is erased; nothing of it is left in the files.\n"
    assert again.out == f"{entry_id} was erased before; nothing of it is left in the files.\n"
    assert shell("recall", "words").out == "Nothing found.\n"


def test_a_pending_erasure_is_a_finding(shell: Shell) -> None:
    entry_id = _remembered(shell, "some words")
    with embedded(shell.folder / "memory.db") as reader:
        store = reader._container.store()
        with store.transactions.snapshot():
            store.vault.count()
            done = shell("erase", entry_id, "--reason", "user_request")
            checked = shell("doctor", "--json")

    assert done.status == 1
    assert "remembrancer doctor" in done.out
    assert checked.status == 1
    assert [one["what"] for one in checked.data if not one["ok"]] == ["erasures"]
    assert shell("doctor").status == 0


@pytest.mark.parametrize(
    "command",
    [
        ["correct", UNKNOWN, "--text", "x", "--reason", "edited"],
        ["erase", UNKNOWN, "--reason", "edited"],
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_entry_is_wrong_use(shell: Shell, command: list[str]) -> None:
    shell("init")

    done, data = shell(*command), shell(*command, "--json")

    assert (done.status, data.status) == (2, 2)
    assert "unknown here; check the id" in " ".join(done.err.split())
    assert data.data["error"]["fields"] == {"entry_id": UNKNOWN}


@pytest.mark.parametrize("entry_id", ["7", "not-an-id", "{}", ""])
@pytest.mark.parametrize("command", ["correct", "erase"])
def test_an_id_must_be_one(shell: Shell, command: str, entry_id: str) -> None:
    shell("init")

    done = shell(command, entry_id, "--reason", "edited")

    assert (done.status, done.err) == (2, "error: entry id: is not a UUID\n")


def test_a_correction_of_an_erased_entry_is_refused(shell: Shell) -> None:
    entry_id = _remembered(shell, "some words")
    shell("erase", entry_id, "--reason", "user_request")

    done = shell("correct", entry_id, "--text", "x", "--reason", "edited", "--json")

    assert (done.status, done.data["error"]["type"]) == (2, "EntryErasedError")


# -- Erasing more than one -----------------------------------------------------


def test_a_session_can_be_erased(shell: Shell) -> None:
    shell("remember", "some words")
    shell("pack", "s1", "plan", "words", "--item", "1:task:Something private.")

    done = shell("erase-session", "s1")

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("s1: the content of 1 selection is erased; nothing of it is left")
    assert "differs: task: erased" in shell("replay", "s1", "plan").out


def test_a_session_of_which_nothing_is_kept_is_told(shell: Shell) -> None:
    shell("remember", "some words")

    done = shell("erase-session", "s2")

    assert done.status == 0
    assert done.out.startswith("s2: nothing was kept for that session (of that tenant)")


def test_an_owner_is_erased_only_with_a_yes(shell: Shell) -> None:
    shell("remember", "some words")

    asked = shell("erase-owner", "--reason", "user_request")
    kept = shell.json("status")["entries"]
    done = shell("erase-owner", "--reason", "user_request", "--yes")

    assert (asked.status, kept) == (2, 1)
    assert "local/me" in asked.err
    assert "local/me: 1 entry and all sessions erased; nothing of it is left" in done.out
    assert shell.json("status")["entries"] == 0


def test_a_reason_for_erasing_says_what_is_kept_of_it(shell: Shell) -> None:
    told = " ".join(shell("erase", "--help").out.replace("│", " ").split())

    assert "kept in the log for ever; words are not kept at all" in told
