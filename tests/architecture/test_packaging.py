"""Traps of one namespace over five folders (adr/0001), each met once."""

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import remembrancer

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCE_ROOTS = ["domain", "application", "adapters", "composition", "tests/contracts"]
SHIPPED = {".py", ".sql", ".typed", ".md", ".txt", ".toml", ".json", ".html", ".css", ".js"}


def test_namespace_has_no_init() -> None:
    """A stray ``__init__.py`` would hide every other portion, while mypy stays green."""
    assert getattr(remembrancer, "__file__", None) is None


@pytest.mark.parametrize("source_root", SOURCE_ROOTS)
def test_source_root_exposes_one_name(source_root: str) -> None:
    """Editable installs put these folders on sys.path, so nothing else may lie there."""
    names = {path.name for path in (ROOT / source_root).iterdir()} - {"__pycache__"}

    assert names == {"remembrancer"}


@pytest.mark.parametrize("source_root", SOURCE_ROOTS)
def test_portion_exposes_one_ring(source_root: str) -> None:
    portion = ROOT / source_root / "remembrancer"

    names = {path.name for path in portion.iterdir()} - {"__pycache__"}

    assert names == {Path(source_root).name}
    assert (portion / Path(source_root).name / "py.typed").exists()


def test_lists_of_folders_agree() -> None:
    """The wheel reads one, editable installs the other, mypy and ruff two more."""
    build = PROJECT["tool"]["hatch"]["build"]
    mypy_path = PROJECT["tool"]["mypy"]["mypy_path"].split(":")

    assert build["dev-mode-dirs"] == SOURCE_ROOTS
    assert build["targets"]["wheel"]["packages"] == [f"{r}/remembrancer" for r in SOURCE_ROOTS]
    assert mypy_path == [f"$MYPY_CONFIG_FILE_DIR/{source_root}" for source_root in SOURCE_ROOTS]
    assert PROJECT["tool"]["ruff"]["src"] == SOURCE_ROOTS


def test_wheel_from_sdist_is_not_emptied() -> None:
    """``sources`` here makes the wheel that is built from the sdist silently empty."""
    assert "sources" not in PROJECT["tool"]["hatch"]["build"]


def test_every_folder_of_modules_is_a_package() -> None:
    """A folder without ``__init__.py`` works here, and tools that count packages miss it."""
    bare = [
        str(folder.relative_to(ROOT))
        for source_root in SOURCE_ROOTS
        for folder in (ROOT / source_root / "remembrancer").rglob("*")
        if folder.is_dir() and list(folder.glob("*.py")) and not (folder / "__init__.py").exists()
    ]

    assert not bare


def test_only_kinds_of_files_that_are_shipped_lie_among_the_sources() -> None:
    strays = [
        str(path.relative_to(ROOT))
        for source_root in SOURCE_ROOTS
        for path in (ROOT / source_root).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in SHIPPED
    ]

    assert not strays


def test_library_is_pinned_below_the_release_that_moves_its_imports() -> None:
    dependencies = PROJECT["project"]["dependencies"]

    assert [one for one in dependencies if one.startswith("eventsourcing")] == [
        "eventsourcing>=9.5.6,<9.6"
    ]


def test_what_is_needed_is_pinned_without_saying_where_from() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()

    assert all(pin.count("==") == 1 and "/" not in pin and "@" not in pin for pin in pins)
    pinned = {pin.split("==")[0].lower().replace("_", "-") for pin in pins}
    assert {"pip", "hatchling", "eventsourcing", "apsw", "pytest", "ruff", "mypy"} <= pinned


def test_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="remembrancer")

    assert command.value == PROJECT["project"]["scripts"]["remembrancer"]
    assert callable(command.load())


def test_licence_is_the_one_that_is_named() -> None:
    text = (ROOT / "LICENSE").read_text()

    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_module_runs_from_any_folder(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-I", "-c", "import remembrancer.domain, remembrancer.composition"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (run.returncode, run.stderr) == (0, "")
