"""Whatever is wrong: a message that says what to do, the right status, no traceback."""

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
import typer
from tests.composition.shell import Result, Shell

from remembrancer.composition import embedded
from remembrancer.composition.cli.app import app

UNKNOWN = "00000000-0000-4000-8000-000000000000"
COMMANDS = {
    "init": ["init"],
    "import": ["import", "notes.md"],
    "remember": ["remember", "some words"],
    "correct": ["correct", UNKNOWN, "--text", "x", "--reason", "edited"],
    "erase": ["erase", UNKNOWN, "--reason", "edited"],
    "recall": ["recall", "words"],
    "pack": ["pack", "s", "plan", "words"],
    "replay": ["replay", "s", "plan"],
    "reindex": ["reindex"],
    "status": ["status"],
    "doctor": ["doctor"],
}
THAT_MAKE_ONE = {"init", "import", "remember"}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, shell: Shell) -> list[str]:
    (shell.folder / "notes.md").write_text("# Note\nWords.\n")
    return COMMANDS[request.param]


def _refused(shell: Shell, command: list[str], *, status: int, told: str) -> None:
    plain, data = shell(*command), shell(*command, "--json")

    for done in (plain, data):
        assert done.status == status, done
        assert "Traceback" not in done.err + done.out
    assert plain.out == ""
    assert plain.err.startswith("error: ")
    assert told in " ".join(plain.err.split())
    assert told in data.data["error"]["message"]
    assert set(data.data["error"]) == {"type", "message", "retry", "fields"}


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_text_file(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def _anothers_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def _from_a_newer_release(path: Path) -> None:
    embedded(path).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()


def _cut_short(path: Path) -> None:
    embedded(path).close()
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("made", "status", "told"),
    [
        (_a_folder, 2, "is a folder; name a file in it"),
        (_a_text_file, 1, "is not a SQLite database"),
        (_anothers_database, 1, "is a database of another program"),
        (_from_a_newer_release, 1, "upgrade remembrancer"),
        (_cut_short, 1, "is damaged"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).strip("_"),
)
def test_a_file_that_is_no_memory_of_ours(
    shell: Shell, command: list[str], made: Callable[[Path], None], status: int, told: str
) -> None:
    path = shell.folder / "memory.db"
    made(path)
    before = path.read_bytes() if path.is_file() else None

    _refused(shell, command, status=status, told=told)

    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_missing_memory_is_named_with_what_to_do(shell: Shell, command: list[str]) -> None:
    if command[0] in THAT_MAKE_ONE:
        assert shell(*command).status == 0
        return

    _refused(shell, command, status=2, told="make one with `remembrancer init`")
    assert not (shell.folder / "memory.db").exists()


def test_a_missing_folder_is_not_made(shell: Shell, command: list[str]) -> None:
    told = "create it" if command[0] in THAT_MAKE_ONE else "remembrancer init"

    _refused(shell, [*command, "--db", "no/memory.db"], status=2, told=told)
    assert not (shell.folder / "no").exists()


def test_wrong_settings_are_named(shell: Shell, command: list[str]) -> None:
    (shell.folder / "remembrancer.toml").write_text("[store]\npth = 'x'")

    _refused(shell, command, status=2, told="setting store.pth: is unknown; known are backend")


def test_a_missing_settings_file_is_named(shell: Shell, command: list[str]) -> None:
    _refused(
        shell, [*command, "--config", "no.toml"], status=2, told="there is no such settings file"
    )


def test_an_unknown_option_is_wrong_use(shell: Shell, command: list[str]) -> None:
    plain, data = shell(*command, "--nope"), shell(*command, "--nope", "--json")

    assert (plain.status, data.status) == (2, 2)
    assert "No such option" in plain.err
    assert "No such option" in data.data["error"]["message"]


def test_every_command_answers_in_json(shell: Shell, command: list[str]) -> None:
    shell("init")
    entry_id = shell.json("remember", "some words")["entry_id"]
    shell("pack", "s", "plan", "words")
    given = [entry_id if one == UNKNOWN else one for one in command]

    done = shell(*given, "--json")

    assert done.status == 0, done
    assert isinstance(json.loads(done.out), dict | list)
    assert done.err == ""


def test_every_command_explains_itself(shell: Shell, command: list[str]) -> None:
    done = shell(command[0], "--help")

    assert done.status == 0
    assert f"remembrancer {command[0]}" in done.out or "Usage" in done.out


@pytest.mark.parametrize("arguments", [[], ["nope"], ["--nope"]], ids=str)
def test_no_command_is_wrong_use(shell: Shell, arguments: list[str]) -> None:
    done = shell(*arguments)

    assert done.status == 2
    assert "Traceback" not in done.err + done.out
    assert "Usage" in done.err + done.out


# -- Files that may only be read ---------------------------------------------


@pytest.fixture(params=["memory.db", "."], ids=["file", "folder"])
def guarded(
    request: pytest.FixtureRequest, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """A memory whose file, or folder, may not be written, also by whoever may write all."""
    shell("remember", "some words")
    shell("pack", "s", "plan", "words")
    path = shell.folder / request.param
    allowed = path.stat().st_mode
    path.chmod(allowed & ~0o222)
    real = os.access

    def access(asked: str | Path, mode: int) -> bool:
        return not (Path(asked).resolve() == path.resolve() and mode & os.W_OK) and real(
            asked, mode
        )

    monkeypatch.setattr(os, "access", access)
    yield shell
    path.chmod(allowed)


@pytest.mark.parametrize("command", ["recall", "replay", "status", "doctor"])
def test_reading_works_where_writing_is_not_allowed(guarded: Shell, command: str) -> None:
    done = guarded(*COMMANDS[command])

    assert (done.status, done.err if command != "replay" else "") == (0, "")


@pytest.mark.parametrize("command", ["remember", "reindex", "pack"])
def test_writing_says_that_it_is_not_allowed(guarded: Shell, command: str) -> None:
    arguments = [one if one != "plan" else "other" for one in COMMANDS[command]]

    _refused(guarded, arguments, status=1, told="read-only; open it where it may be written")


# -- Files that reading alone can't open -------------------------------------


@pytest.mark.parametrize("command", ["recall", "status"])
def test_an_empty_file_is_no_memory_yet(shell: Shell, command: str) -> None:
    (shell.folder / "memory.db").touch()

    _refused(shell, COMMANDS[command], status=2, told="make one with `remembrancer init`")


@pytest.mark.parametrize("command", ["recall", "replay", "status"])
def test_a_file_of_an_older_schema_is_brought_up_by_a_question(shell: Shell, command: str) -> None:
    shell("remember", "some words")
    shell("pack", "s", "plan", "words")
    connection = apsw.Connection(str(shell.folder / "memory.db"))
    connection.execute("UPDATE schema_info SET scripts_sha256 = 'older'")
    connection.close()

    done: Result = shell(*COMMANDS[command])

    assert done.status == 0, done
    assert "words" in done.out or command == "status"


# -- What a person reads -------------------------------------------------------


def test_a_command_cannot_keep_a_memory_in_memory(shell: Shell, command: list[str]) -> None:
    (shell.folder / "remembrancer.toml").write_text("[store]\nbackend = 'memory'")

    _refused(shell, command, status=2, told="setting store.backend: memory is for a process")


@pytest.mark.parametrize("option", ["--tenant", "--owner", "--principal"])
def test_a_name_that_says_nothing_is_refused_not_replaced(shell: Shell, option: str) -> None:
    shell("init")

    _refused(shell, ["recall", "words", option, ""], status=2, told="must not be blank")


def test_a_folder_in_the_place_of_settings_is_named(shell: Shell, command: list[str]) -> None:
    _refused(shell, [*command, "--config", "."], status=2, told="setting .: is a folder; name a")


def test_wrong_use_is_one_line_where_no_terminal_is(shell: Shell) -> None:
    done = shell("recall", "x", "--kind", "n" * 200)

    assert f"error: Invalid value for '--kind': '{'n' * 200}' is not one of" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["recall", "x", "--limit", "many"], "must be a whole number"),
        (["timeline", "--after", "1.5"], "must be a whole number"),
        (["pack", "s", "p", "x", "--item", "0:a:@gone.txt"], "gone.txt: can't be read: No such"),
        (["pack", "s", "p", "x", "--item", "0:a:@latin.txt"], "latin.txt: isn't UTF-8 text"),
        (["import"], "Missing argument 'PATH'"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_told_without_words_of_python(
    shell: Shell, arguments: list[str], told: str
) -> None:
    shell("init")
    (shell.folder / "latin.txt").write_bytes(b"caf\xe9")

    done = shell(*arguments)

    assert done.status == 2
    assert told in done.err
    assert not re.search(r"Input|Error|<class|unable", done.err)


def _helps(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, (*path, name))


@pytest.mark.parametrize("path", [*_helps(typer.main.get_command(app), ())], ids=" ".join)
def test_the_words_of_a_help_run_on_to_the_end_of_the_line(
    shell: Shell, path: tuple[str, ...]
) -> None:
    shown = shell(*path, "--help").out
    prose = shown[: shown.find("\u256d")] if "\u256d" in shown else shown
    lines = [line.strip() for line in prose.splitlines()]

    short = [
        line
        for line, after in pairwise(lines)
        if line and after and len(f"{line} {after.split()[0]}") < 76
    ]
    assert not short
    assert max(map(len, shown.splitlines())) <= 80


def test_no_help_shows_pictures_in_the_place_of_words(shell: Shell, command: list[str]) -> None:
    shown = shell(command[0], "--help").out

    assert not [sign for sign in shown if ord(sign) > 0xFFFF]


@pytest.mark.parametrize("command", ["init", "remember"])
def test_a_folder_where_nothing_may_be_made_is_a_matter_of_permissions(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)

    _refused(
        shell, COMMANDS[command], status=1, told="made in this folder; see to the permissions"
    )


@pytest.mark.parametrize("group", [(), ("maintain",), ("migrate",)])
def test_a_group_without_a_command_shows_its_help_alone(
    shell: Shell, group: tuple[str, ...]
) -> None:
    done = shell(*group)

    assert "Usage" in done.out + done.err
    assert "error" not in done.err


def test_every_argument_and_option_says_what_it_is() -> None:
    def silent(command: Any, path: str) -> list[str]:
        found = [
            f"{path} {one.name}"
            for one in command.params
            if one.name != "help" and not getattr(one, "help", None)
        ]
        for name, inner in getattr(command, "commands", {}).items():
            found += silent(inner, f"{path} {name}")
        return found

    assert silent(typer.main.get_command(app), "remembrancer") == []
