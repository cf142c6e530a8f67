"""Starting the child processes of a check."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any

from remembrancer.composition.gate_checks.measured import CheckFailedError
from remembrancer.composition.gate_checks.rehearsal import Rehearsal

_CHILD = "remembrancer.composition.gate_checks.child"


class Child:
    """A process of ours, talked to line by line."""

    def __init__(self, process: "subprocess.Popen[str]", inlet: IO[str], outlet: IO[str]) -> None:
        self.process = process
        self._inlet = inlet
        self._outlet = outlet

    def tell(self, line: str) -> None:
        """Send it a line."""
        self._inlet.write(line + "\n")
        self._inlet.flush()

    def hear(self) -> str:
        """Return the next line that it says.

        Raises:
            CheckFailedError: it ended without a word.
        """
        line = self._outlet.readline()
        if not line:
            raise CheckFailedError(f"a process of the check ended with {self.process.wait()}")
        return line.rstrip("\n")

    def kill(self) -> None:
        """End it without a chance to clean up (SIGKILL)."""
        self.process.kill()
        self.process.wait()


@contextmanager
def child(rehearsal: Rehearsal, what: str, **order: Any) -> Generator[Child]:
    """Start a process that works on the rehearsal's folder; it never outlives the block."""
    told = {
        "what": what,
        "settings": rehearsal.settings.model_dump(mode="json"),
        "folder": str(rehearsal.folder),
        **order,
    }
    with subprocess.Popen(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None  # noqa: S101  # pipes were asked for
        assert process.stdout is not None  # noqa: S101  # as above
        one = Child(process, process.stdin, process.stdout)
        try:
            one.tell(json.dumps(told))
            yield one
        finally:
            if process.poll() is None:
                one.kill()
