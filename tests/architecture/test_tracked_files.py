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
            [r"pypi\." + "org", "python" + r"hosted\.org", "index" + "-url", "find" + "-links"]
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


def _silent(source: str) -> list[str]:
    """Return the ignores without a reason: beside them, or in a comment above their lines."""
    found, said_above = list[str](), False
    for line in source.splitlines():
        ignores = re.search(r"# (type: ignore\[[\w, -]+\]|noqa: [A-Z0-9, ]+)\s*$", line)
        if ignores and not said_above:
            found.append(line.strip())
        if not ignores and line.strip() and not re.fullmatch(r"\s*(\w+,|\))", line):
            said_above = line.lstrip().startswith("#") and "noqa" not in line
    return found


def test_ignores_say_why() -> None:
    silent = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in _tracked()
        if path.suffix == ".py" and path.name != THIS
        for line in _silent(path.read_text())
    ]

    assert not silent


@pytest.mark.parametrize(
    "ignore", ["# type: ignore[arg-type]", "# noqa: PLC0415", "# noqa: A1, B2"]
)
def test_a_silent_ignore_would_be_seen(ignore: str) -> None:
    assert _silent(f"x = 1\ny = 2  {ignore}\n")
    assert not _silent(f"y = 2  {ignore}  # the point\n")
    assert not _silent(f"# Only here.\ny = 2  {ignore}\n    x,\n)\nz = 3  {ignore}\n")
    assert _silent(f"# Only here.\ny = 2\nz = 3  {ignore}\n")
