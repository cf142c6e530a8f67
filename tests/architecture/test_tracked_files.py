"""What must not be in any file of the project."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THIS = Path(__file__).name
TEXT_MAX_BYTES = 1_000_000

FORBIDDEN = {
    # Split, so that this file doesn't hold what it forbids.
    "host of a package registry": re.compile(
        "|".join(
            [r"pypi\." + "org", "pythonhosted" + r"\.org", "index" + "-url", "find" + "-links"]
        )
    ),
    "path of a machine": re.compile(
        r"(?<![\w.])/(work|home/\w+|root|Users/\w+)/(main|shared|\.|\w+/)" + r"[\w.]"
    ),
    "blanket ignore": re.compile(
        "|".join(
            [r"# " + r"type: ignore(?!\[)", r"# " + r"noqa(?!: ?[A-Z]+\d)", "ruff: " + "noqa",
             "mypy: " + "ignore-errors", "pyright: " + r"ignore(?!\[)"]
        )
    ),
    "conflict mark": re.compile(r"^(<{7} |>{7} )", re.MULTILINE),
    "private key": re.compile("BEGIN " + r"[A-Z ]*PRIVATE KEY"),
}  # fmt: skip


def _tracked() -> list[Path]:
    """Return what git would publish; without git, what lies here."""
    run = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607  # the reader's own git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = run.stdout.split("\0") if run.returncode == 0 else []
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    found = []
    for path in _tracked():
        data = path.read_bytes()
        if path.name == THIS or len(data) > TEXT_MAX_BYTES or b"\0" in data:
            continue
        match = FORBIDDEN[what].search(data.decode())
        if match:
            found.append(f"{path.relative_to(ROOT)}: {match[0]}")

    assert not found


def test_no_large_file_is_kept() -> None:
    large = [path.name for path in _tracked() if path.stat().st_size > TEXT_MAX_BYTES]

    assert not large


def test_ignores_say_why() -> None:
    """``# noqa: X`` alone is for what explains itself in the line above or in the code."""
    silent = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in _tracked()
        if path.suffix == ".py" and path.name != THIS
        for line in path.read_text().splitlines()
        if re.search(r"# type: ignore\[[\w, -]+\]\s*$", line)
    ]

    assert not silent
