"""Importing the library costs little: what is heavy waits until it is used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIGHT = {
    "eventsourcing", "pydantic", "typing_extensions",
    "annotated_types", "pydantic_core", "typing_inspection",  # pydantic's own
}  # fmt: skip
"""All that importing us may load of others."""

_REPORT = """
import json, sys
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
_WATCH = """
import sys
def watch(event, arguments):
    if event.startswith(("socket.", "sqlite3.connect", "subprocess.", "os.system")):
        raise SystemExit(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise SystemExit(f"open {arguments[0]}")
sys.dont_write_bytecode = True
sys.addaudithook(watch)
"""


def _loaded_by(statement: str, folder: Path) -> set[str]:
    """Return the top-level modules that a fresh interpreter has after ``statement``."""
    script = f"{statement}\n{_REPORT}"
    run = subprocess.run(
        [sys.executable, "-I", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "from remembrancer.composition import embedded",
        "from remembrancer.composition import embedded, production, Remembrancer, Settings",
        "import remembrancer.domain",
        "import remembrancer.application.ports",
    ],
)
def test_import_leaves_the_heavy_outside(statement: str, tmp_path: Path) -> None:
    others = {
        name
        for name in _loaded_by(statement, tmp_path) - _loaded_by("", tmp_path)
        if name not in sys.stdlib_module_names and not name.startswith("_")
    }

    assert others - {"remembrancer"} <= LIGHT


def test_the_command_line_sees_to_interrupts_before_it_loads_anything(tmp_path: Path) -> None:
    loaded = _loaded_by("from remembrancer.composition.cli import main", tmp_path)

    others = {name for name in loaded if name not in sys.stdlib_module_names}
    assert others - _loaded_by("", tmp_path) == {"remembrancer"}


def test_domain_needs_no_database_and_no_event_loop(tmp_path: Path) -> None:
    loaded = _loaded_by("import remembrancer.domain", tmp_path)

    assert not loaded & {"asyncio", "sqlite3"}


def test_import_leaves_no_file_and_opens_no_connection(tmp_path: Path) -> None:
    watched = _WATCH + "from remembrancer.composition import embedded"

    _loaded_by(watched, tmp_path)

    assert not list(tmp_path.iterdir())
