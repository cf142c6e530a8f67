"""A writer is killed (SIGKILL) at a write, sync or truncation of the scenario, or at any moment.

``python -m tests.crash.killing FOLDER MODE FIRST COUNT EVERY`` forks a writer for each kill, from
a process without threads, and prints as JSON how many there were and what was lost.  MODE is
``step`` (at file operation FIRST, FIRST + EVERY, ...) or ``moment`` (at random, from seed FIRST).
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import apsw
from tests.adapters.power_cut import rebuild
from tests.crash.scenario import FILE, Examiner, Told, lived, prepared
from typing_extensions import override

REAL = "unix"
LOSSES_MAX = 20


class KillingFileSystem(apsw.VFS):
    """Passes everything on, and kills this process before a chosen operation."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0
        super().__init__("killing", base=REAL, makedefault=True)

    def operation(self) -> None:
        """Count one; it may be the last."""
        if self.count == self.at:
            kill_me()
        self.count += 1

    @override
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "KillingFile":
        return KillingFile(self, name, flags)

    @override
    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.operation()
        super().xDelete(filename, syncdir)


class KillingFile(apsw.VFSFile):
    def __init__(
        self,
        file_system: KillingFileSystem,
        name: str | apsw.URIFilename | None,
        flags: list[int],
    ) -> None:
        super().__init__(REAL, name, flags)
        self._file_system = file_system

    @override
    def xWrite(self, data: bytes, offset: int) -> None:
        self._file_system.operation()
        super().xWrite(data, offset)

    @override
    def xTruncate(self, newsize: int) -> None:
        self._file_system.operation()
        super().xTruncate(newsize)

    @override
    def xSync(self, flags: int) -> None:
        self._file_system.operation()
        super().xSync(flags)


def kill_me() -> NoReturn:
    """End this process here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class Killing:
    """Forks writers, kills them, and looks at what they left."""

    def __init__(self, folder: Path) -> None:
        self._older = prepared(folder)
        self._folder = folder / "killed"
        self._folder.mkdir()
        self.operations, self._took_s, self._told = self._reference(folder / "reference")
        self.examiner = Examiner(self._folder, self._told)
        self.lost: list[str] = []
        self.kills = 0

    def _reference(self, folder: Path) -> tuple[int, float, list[Told]]:
        folder.mkdir()
        file_system = KillingFileSystem(None)
        told = lived(folder, self._older, lambda: None)
        file_system.unregister()
        rebuild(folder, {})
        began_s = time.monotonic()
        lived(folder, self._older, lambda: None, looks=False)
        return file_system.count, time.monotonic() - began_s, told

    def at_step(self, operation: int) -> None:
        """Kill a writer before its operation of this number."""
        self._killed(lambda: KillingFileSystem(operation), None, f"at operation {operation}")

    def at_moment(self, chance: random.Random) -> None:
        """Kill a writer somewhere."""
        after_s = chance.uniform(0, self._took_s)
        self._killed(lambda: None, after_s, f"after {after_s:.4f} s")

    def _killed(self, prepare: Callable[[], object], after_s: float | None, when: str) -> None:
        rebuild(self._folder, {})
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._write(prepare, writing)
        os.close(writing)
        if after_s is not None:
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)
        told = b""
        while some := os.read(reading, 4_096):
            told += some
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            if os.WEXITSTATUS(status):
                self.lost.append(f"{when}: the writer failed")
            elif after_s is None:
                self.lost.append(f"{when}: nobody was killed")
            return  # It came to its end first.
        self.kills += 1
        problem = self._lost(len(told))
        if problem:
            self.lost.append(f"{when}, {len(told)} acknowledged: {problem}")

    def _lost(self, acknowledged: int) -> str:
        if not (self._folder / FILE).exists():
            return ""  # Killed before the older file was even copied.
        if (self._folder / FILE).stat().st_size < self._older.stat().st_size:
            return "" if acknowledged == 0 else "the file is cut"
        return self.examiner.lost(acknowledged)

    def _write(self, prepare: Callable[[], object], writing: int) -> NoReturn:
        try:
            file_system = prepare()  # Kept: it is gone with its last reference.
            lived(self._folder, self._older, lambda: os.write(writing, b"."), looks=False)
            del file_system
        except BaseException as error:  # noqa: BLE001  # a fork must not go on as its parent
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)


def main(folder: str, mode: str, first: str, count: str, every: str) -> None:
    """Kill, and print what came of it."""
    killing = Killing(Path(folder))
    chance = random.Random(int(first))  # noqa: S311  # repeatable on purpose
    for number in range(int(count)):
        if mode == "moment":
            killing.at_moment(chance)
        elif int(first) + number * int(every) < killing.operations:
            killing.at_step(int(first) + number * int(every))
        if len(killing.lost) >= LOSSES_MAX:
            break
    told = {
        "kills": killing.kills,
        "operations": killing.operations,
        "contents": killing.examiner.contents,
        "lost": killing.lost,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
