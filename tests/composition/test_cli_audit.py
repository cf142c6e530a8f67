"""`audit`, `audit seal`, `audit verify` and `audit keygen` on the command line."""

import json
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.composition.shell import Shell

FILES = ("memory.db", "key.pem", "key.pem.pub", "seal.jsonl")


def _look(folder: Path) -> dict[str, tuple[int, int]]:
    return {one.name: (one.stat().st_size, one.stat().st_mtime_ns) for one in folder.iterdir()}


def _altered(shell: Shell, *statements: str) -> None:
    connection = apsw.Connection(str(shell.folder / "memory.db"))
    guards: Any = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'stored%'"
    ).fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in (*statements, *(guard for _, guard in guards)):
        connection.execute(statement)
    connection.close()


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Return a shell in a folder with a memory of three entries."""
    for text in ("Ana prefers short answers.", "The build needs Python.", "Tests come first."):
        assert shell("remember", text).status == 0
    return shell


@pytest.fixture
def sealed(filled: Shell) -> Shell:
    """As the first, with a pair of keys and a seal."""
    assert filled("audit", "keygen", "--key", "key.pem").status == 0
    assert filled("audit", "seal", "--key", "key.pem", "--out", "seal.jsonl").status == 0
    return filled


# -- audit -------------------------------------------------------------------


def test_a_sound_memory_is_told_shortly(filled: Shell) -> None:
    result = filled("audit")

    assert result.status == 0
    assert "3 events in 3 streams" in result.out
    assert "invariants hold" in result.out
    assert len(result.out.splitlines()) <= 4


def test_json_tells_what_was_looked_at(filled: Shell) -> None:
    data = filled.json("audit")

    assert (data["green"], data["findings"], data["position"]) == (True, [], 3)
    assert data["counts"]["originals"] == 3
    assert {"name", "sentence", "source"} == set(data["invariants"][0])


def test_it_leaves_no_trace(filled: Shell) -> None:
    before = _look(filled.folder)

    assert filled("audit").status == 0

    assert _look(filled.folder) == before


def test_each_finding_is_named(filled: Shell) -> None:
    _altered(filled, "UPDATE original SET kind = 'core' WHERE number = 1")

    result = filled("audit", "--json")

    assert result.status == 1
    [finding] = result.data["findings"]
    assert finding["invariant"] == "originals-match"
    assert (finding["expected"], finding["found"]) == ("kind note", "kind core")


def test_findings_are_shown_to_a_person_too(filled: Shell) -> None:
    _altered(filled, "DELETE FROM stored_events WHERE notification_id = 2")

    result = filled("audit")

    assert result.status == 1
    assert "positions-without-holes" in result.out
    assert "originals-match" in result.out


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--owner", "me"), 1),
        (("--tenant", "local"), 1),
        (("--owner", "other"), 0),
        (("--tenant", "elsewhere"), 0),
        (("--since", "2999-01-01"), 1),
        (("--since", "2999-01-01T12:00+02:00"), 1),
    ],
)
def test_findings_can_be_narrowed(filled: Shell, options: tuple[str, str], status: int) -> None:
    """What is wrong with the vault has no time: it is told whatever ``--since`` says."""
    _altered(filled, "UPDATE original SET kind = 'core' WHERE number = 1")

    filled("remember", "words", "--owner", "other")
    filled("remember", "words", "--tenant", "elsewhere", "--owner", "other")

    assert filled("audit", *options).status == status


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--owner", "nobody"), "owner: nothing was ever recorded of nobody"),
        (("--tenant", "nowhere"), "tenant: nothing was ever recorded of nowhere"),
        (("--tenant", "no", "--owner", "me"), "owner: nothing was ever recorded of no/me"),
    ],
)
def test_who_is_unknown_is_told_instead_of_being_found_sound(
    filled: Shell, options: tuple[str, ...], told: str
) -> None:
    done = filled("audit", "--html", "page.html", *options)

    assert (done.status, done.out, done.err) == (2, "", f"error: {told}\n")
    assert not (filled.folder / "page.html").exists()


def test_an_audit_of_one_owner_says_how_much_that_is(filled: Shell) -> None:
    filled("remember", "words", "--owner", "other")

    told, data = filled("audit", "--owner", "me"), filled.json("audit", "--owner", "me")

    assert "Told are findings about who was asked for: 3 streams." in told.out
    assert (data["asked_streams"], filled.json("audit")["asked_streams"]) == (3, None)


@pytest.mark.parametrize(
    "options",
    [("--since", "yesterday"), ("--owner", ""), ("--db", "nowhere.db"), ("--html",)],
)
def test_wrong_use_is_told_apart_from_findings(filled: Shell, options: tuple[str, ...]) -> None:
    assert filled("audit", *options).status == 2


@pytest.mark.parametrize("content", [b"", b"no database, whatever it is called " * 200])
def test_what_is_no_memory_is_a_finding(shell: Shell, content: bytes) -> None:
    (shell.folder / "memory.db").write_bytes(content)

    result = shell("audit", "--json")

    assert result.status == 1
    assert "store-is-whole" in {one["invariant"] for one in result.data["findings"]}


def test_a_page_is_written_on_request(filled: Shell) -> None:
    result = filled("audit", "--html", "report.html")

    assert result.status == 0
    assert (filled.folder / "report.html").stat().st_size > 1_000


# -- keygen ------------------------------------------------------------------


def test_only_its_owner_may_read_a_private_key(shell: Shell) -> None:
    assert shell("audit", "keygen", "--key", "key.pem", "--public-key", "public.pem").status == 0

    mode = stat.S_IMODE((shell.folder / "key.pem").stat().st_mode)
    assert mode == 0o600
    assert "PRIVATE" in (shell.folder / "key.pem").read_text()
    assert "PUBLIC" in (shell.folder / "public.pem").read_text()


def test_a_key_is_never_replaced(shell: Shell) -> None:
    shell("audit", "keygen", "--key", "key.pem")
    before = (shell.folder / "key.pem").read_bytes()

    assert shell("audit", "keygen", "--key", "key.pem").status == 2
    assert (shell.folder / "key.pem").read_bytes() == before


def test_half_a_pair_is_never_left(shell: Shell) -> None:
    (shell.folder / "key.pem.pub").write_text("somebody's")

    assert shell("audit", "keygen", "--key", "key.pem").status == 2

    assert not (shell.folder / "key.pem").exists()


# -- seal and verify ---------------------------------------------------------


def test_a_later_state_extends_the_seal(sealed: Shell) -> None:
    sealed("remember", "Something new.")

    result = sealed("audit", "verify", "--seal", "seal.jsonl", "--public-key", "key.pem.pub")

    assert result.status == 0
    assert "all is there, unaltered: 3 events in 3 streams" in result.out


def test_an_erasure_does_not_break_it(sealed: Shell) -> None:
    [entry] = sealed.json("recall", "Python")["entries"][:1]
    assert sealed("erase", entry["entry_id"], "--reason", "asked").status == 0

    verified = sealed("audit", "verify", "--seal", "seal.jsonl", "--public-key", "key.pem.pub")

    assert verified.status == 0
    assert sealed("audit").status == 0


def test_a_lost_tail_is_named(sealed: Shell) -> None:
    _altered(
        sealed,
        "DELETE FROM stored_events WHERE notification_id = 3",
        "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'stored_events'",
    )

    result = sealed(
        *("audit", "verify", "--seal", "seal.jsonl", "--public-key", "key.pem.pub", "--json")
    )

    assert result.status == 1
    found = {(one["version"], one["found"]) for one in result.data["findings"]}
    assert (1, "no such stream") in found


def test_another_key_is_not_trusted(sealed: Shell) -> None:
    sealed("audit", "keygen", "--key", "other.pem")

    result = sealed("audit", "verify", "--seal", "seal.jsonl", "--public-key", "other.pem.pub")

    assert result.status == 1
    assert "seal-is-genuine" in result.out


def test_an_unsound_log_is_not_sealed(sealed: Shell) -> None:
    _altered(sealed, "UPDATE stored_events SET event_hash = randomblob(32)")

    result = sealed("audit", "seal", "--key", "key.pem", "--out", "other.jsonl")

    assert result.status == 1
    assert not (sealed.folder / "other.jsonl").exists()


def test_a_seal_is_never_replaced(sealed: Shell) -> None:
    assert sealed("audit", "seal", "--key", "key.pem", "--out", "seal.jsonl").status == 2


def test_sealing_and_verifying_leave_no_trace(sealed: Shell) -> None:
    before = _look(sealed.folder)["memory.db"]

    sealed("audit", "seal", "--key", "key.pem", "--out", "second.jsonl")
    sealed("audit", "verify", "--seal", "second.jsonl", "--public-key", "key.pem.pub")

    assert {one.name for one in sealed.folder.iterdir()} == {*FILES, "second.jsonl"}
    assert _look(sealed.folder)["memory.db"] == before


def test_a_seal_says_what_it_is(sealed: Shell) -> None:
    lines = (sealed.folder / "seal.jsonl").read_text().splitlines()

    assert json.loads(lines[0]) == {"format": "remembrancer-seal", "format_version": 1}
    assert json.loads(lines[-1])["statement"]["events"] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("seal", "--key", "missing.pem", "--out", "x.jsonl"),
        ("seal", "--key", "key.pem.pub", "--out", "x.jsonl"),
        ("verify", "--seal", "missing.jsonl", "--public-key", "key.pem.pub"),
        ("verify", "--seal", "key.pem", "--public-key", "key.pem.pub"),
        ("verify", "--seal", "seal.jsonl", "--public-key", "key.pem"),
        ("verify", "--seal", "seal.jsonl"),
    ],
)
def test_what_is_no_key_and_no_seal_is_wrong_use(
    sealed: Shell, arguments: tuple[str, ...]
) -> None:
    assert sealed("audit", *arguments).status == 2
