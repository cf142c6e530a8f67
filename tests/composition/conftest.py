"""A shell for the tests of the command line."""

from pathlib import Path

import pytest
from tests.composition.shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Return a shell in an empty folder, with no settings but the defaults."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TERMINAL_WIDTH"):
        monkeypatch.delenv(name, raising=False)
    return Shell(folder=tmp_path, monkeypatch=monkeypatch, captured=capsys)
