"""Running commands: in this process, which is fast, and as a process, which is real."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remembrancer.composition.cli.app import run

_MAIN = (
    "import sys; sys.argv[0] = 'remembrancer'; "
    "from remembrancer.composition.cli import main; main()"
)
COMMAND = [sys.executable, "-c", _MAIN]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Shell:
    """One folder, and commands run in it."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run a command in this process."""
        text = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        self.monkeypatch.setattr(sys, "stdin", text)
        self.captured.readouterr()
        status = run(list(arguments))
        out, err = self.captured.readouterr()
        return Result(status, out, err)

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        """Run a command that must succeed with ``--json``; return what it answered."""
        result = self(*arguments, "--json", stdin=stdin)
        assert result.status == 0, result
        return result.data

    def process(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Result:
        """Run a command as a process of its own."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        out, err = (one.decode(errors="backslashreplace") for one in (done.stdout, done.stderr))
        return Result(done.returncode, out, err)
