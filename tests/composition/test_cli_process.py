"""The command line as a process: pipes, locks, a death in between, odd terminals."""

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.composition.shell import COMMAND, Result, Shell

from remembrancer.composition import embedded
from remembrancer.composition.cli.app import app
from remembrancer.domain import NewEntry, Sensitivity


def test_status_and_streams_are_those_of_a_process(shell: Shell) -> None:
    made = shell.process("init")
    refused = shell.process("recall", "x", "--limit", "many")
    missing = shell.process("status", "--db", "no.db")
    asked = shell.process("recall", "x", "--json")

    assert (made.status, made.out, made.err) == (0, "memory.db is ready: 0 entries.\n", "")
    assert (refused.status, refused.out) == (2, "")
    assert "Traceback" not in refused.err
    assert (missing.status, missing.err[:6]) == (2, "error:")
    assert (asked.status, asked.data["entries"]) == (0, [])


def test_there_are_as_many_commands_as_promised() -> None:
    names = {one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands}

    assert {"init", "import", "remember", "correct", "erase", "recall", "pack"} <= names
    assert {"replay", "reindex", "status", "doctor"} <= names


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    with embedded(shell.folder / "memory.db") as memory:
        memory.remember_many(
            [
                NewEntry(
                    tenant="local",
                    owner="me",
                    scope="notes",
                    text=f"invoice {number} " * 60,
                    sensitivity=Sensitivity.INTERNAL,
                )
                for number in range(400)
            ]
        )
    asked = [*COMMAND, "recall", "invoice", "--limit", "400", "--json"]

    with subprocess.Popen(
        asked, cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        told = process.stderr.read()

    assert (process.returncode, told) == (0, b"")


def test_a_locked_memory_says_to_try_later(shell: Shell) -> None:
    with (
        embedded(shell.folder / "memory.db") as memory,
        memory._container.store().transactions.begin(),
    ):
        done = shell.process("remember", "x", "--json", REMEMBRANCER_STORE__BUSY_TIMEOUT_S="0.2")
        read = shell.process("status", REMEMBRANCER_STORE__BUSY_TIMEOUT_S="0.2")

    assert done.status == 1
    assert done.data["error"]["type"] == "StoreUnavailableError"
    assert done.data["error"]["retry"] == "later"
    assert "try again later" in done.data["error"]["message"]
    assert read.status == 0


def test_after_a_death_in_between_reading_still_works(shell: Shell) -> None:
    """The write-ahead log that a killed process leaves is recovered by a mere question."""
    script = (
        "import os, signal, sys\n"
        "from remembrancer.composition.cli.app import run\n"
        "from remembrancer.composition import embedded\n"
        "from remembrancer.domain import NewEntry, Sensitivity\n"
        "memory = embedded('memory.db')\n"
        "memory.remember(NewEntry(tenant='local', owner='me', scope='notes', text='last words',"
        " sensitivity=Sensitivity.INTERNAL))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", script], cwd=shell.folder, check=False)
    assert died.returncode == -signal.SIGKILL
    assert (shell.folder / "memory.db-wal").stat().st_size > 0
    (shell.folder / "memory.db-shm").unlink()

    done = shell.process("recall", "words", "--json")

    assert [one["text"] for one in done.data["entries"]] == ["last words"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_the_characters_gets_their_escapes(shell: Shell, encoding: str) -> None:
    shell.process("remember", "日本語 naïve [brackets]", "--subject", "名前")

    plain = shell.process("recall", "日本語", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    data = shell.process("recall", "日本語", "--json", PYTHONIOENCODING=encoding, PYTHONUTF8="0")

    assert (plain.status, data.status) == (0, 0)
    assert "\\u65e5" in plain.out
    assert json.loads(data.out)["entries"][0]["text"] == "日本語 naïve [brackets]"


def test_a_path_that_is_not_utf8_is_no_traceback(shell: Shell) -> None:
    folder = os.fsencode(shell.folder) + b"/\xff"

    missing = subprocess.run(
        [*COMMAND, "init", "--db", folder + b"/m.db"], capture_output=True, check=False
    )

    assert missing.returncode == 2
    assert missing.stderr.startswith(b"error: ")
    assert b"Traceback" not in missing.stderr


def test_an_interrupt_is_no_traceback(shell: Shell) -> None:
    asked = [*COMMAND, "remember", "-"]
    with subprocess.Popen(
        asked, cwd=shell.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        database = Path(shell.folder / "memory.db")
        while not database.exists() and process.poll() is None:
            pass
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()

    assert process.returncode == 130
    assert b"interrupted" in told
    assert b"Traceback" not in told


_INTERRUPTED_AT = """
import os, signal, sys
def interrupt(event, arguments):
    if (event, arguments[0]) == ("import", {module!r}):
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
sys.argv = ["remembrancer", "init"]
from remembrancer.composition.cli import main
main()
"""


@pytest.mark.parametrize(
    "module",
    ["remembrancer.composition.cli.app", "pydantic_core", "typer", "rich.table", "eventsourcing"],
)
def test_an_interrupt_while_it_loads_is_quiet(shell: Shell, module: str) -> None:
    """Also in the midst of a package that takes every exception for its own trouble."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT.format(module=module)],
        cwd=shell.folder,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    assert not list(shell.folder.iterdir())


_CALLED_BY_A_HOST = """
import signal, sys, threading
from remembrancer.composition.cli import main
def call(*arguments):
    try:
        main(*arguments)
    except SystemExit as done:
        print(done.code)
def mine(*_):
    raise SystemExit("never called")
sys.argv = ["remembrancer", "--version"]
call(["--version"])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGINT, mine)
call()
assert signal.getsignal(signal.SIGINT) is mine
signal.signal(signal.SIGINT, signal.default_int_handler)
for arguments in ((), (["--version"],)):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_a_host_that_calls_the_command_line_keeps_its_own_ways_with_interrupts(
    shell: Shell,
) -> None:
    """With arguments, a handler of its own, or in any of its threads."""
    done = subprocess.run(
        [sys.executable, "-c", _CALLED_BY_A_HOST],
        cwd=shell.folder,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert [line for line in done.stdout.split() if line == b"0"] == [b"0"] * 4


def test_an_interrupt_that_the_parent_ignores_stays_ignored(shell: Shell) -> None:
    """As ``nohup`` and a shell's ``&`` ask for."""
    script = _INTERRUPTED_AT.format(module="typer")

    done = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", script],
        cwd=shell.folder,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def _redirected(shell: Shell, line: str) -> Result:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {line}', "sh", *COMMAND, "recall", "invoice"],
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_parent_may_have_closed_the_streams(shell: Shell, closed: str) -> None:
    shell("remember", "the invoice service")

    done = _redirected(shell, closed)

    assert (done.status, done.err) == (0, "")
    assert ("invoice" in done.out) is (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is full")
def test_output_that_nobody_can_take_is_no_traceback(shell: Shell) -> None:
    shell("remember", "the invoice service")

    done = _redirected(shell, ">/dev/full")

    assert done.status == 1
    assert done.err == "error: No space left on device\n"


def test_a_folder_that_is_gone_is_no_traceback(shell: Shell) -> None:
    folder = shell.folder / "gone"
    folder.mkdir()
    line = f'rmdir "{folder}" && exec "$@"'
    # As the installed command, which doesn't look for modules in the folder it is called from.
    python, *rest = COMMAND

    done = subprocess.run(
        ["/bin/sh", "-c", line, "sh", python, "-P", *rest, "init"],
        cwd=folder,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("error: setting store.path:")


def test_it_says_which_version_it_is(shell: Shell) -> None:
    assert shell("--version") == Result(0, f"{version('remembrancer')}\n", "")
