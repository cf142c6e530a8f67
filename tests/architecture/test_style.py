"""Rules of style that a reader should be able to rely on."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RINGS = ["domain", "application", "adapters", "composition"]
MODULES = sorted(
    path
    for source_root in [*RINGS, "tests/contracts"]
    for path in (ROOT / source_root / "remembrancer").rglob("*.py")
)
TEST_MODULES = sorted(set((ROOT / "tests").rglob("*.py")) - set(MODULES))
FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "misc", "common"}

# Composition may read the environment; these two adapters are the clock and the dice.
MAY_BE_AMBIENT = ("adapters/remembrancer/adapters/clock/",
                  "adapters/remembrancer/adapters/randomness/",
                  "composition/")  # fmt: skip
AMBIENT = re.compile(
    r"datetime\.(datetime|date)\.(now|today|utcnow)"
    r"|time\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?"
    r"|time\.(gmtime|localtime|ctime)|uuid\.(uuid[124678]|getnode)|(numpy\.)?random\.\w+|secrets\.\w+"
    r"|os\.(urandom|getenv|getrandom|environ|environb)|socket\.gethostname|getpass\.\w+"
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _ambient(source: str) -> list[str]:
    """Return where a module would reach around its ports, by whatever names it has imported."""
    tree = ast.parse(source)
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update({one.asname or one.name: one.name for one in node.names})
        elif isinstance(node, ast.ImportFrom):
            imported.update({one.asname or one.name: f"{node.module}.{one.name}"
                             for one in node.names})  # fmt: skip
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = ast.unparse(node).partition(".")
            meant = f"{imported[first]}{dot}{rest}" if first in imported else ""
            if AMBIENT.fullmatch(meant):
                found.append(f"{meant}:{node.lineno}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=_name)
def test_module_fits_the_screen(module: Path) -> None:
    source = module.read_text()
    tall = [
        f"{node.name}:{node.lineno}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]

    assert not tall
    assert len(source.splitlines()) <= MODULE_LINES_MAX


@pytest.mark.parametrize("module", TEST_MODULES, ids=_name)
def test_module_of_tests_fits_it_too(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MODULE_LINES_MAX


@pytest.mark.parametrize("module", MODULES, ids=_name)
def test_module_says_what_it_is_and_is_named_for_it(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))
    assert not {part.lower() for part in module.with_suffix("").parts} & VAGUE_NAMES


@pytest.mark.parametrize(
    "module",
    [m for m in MODULES if not _name(m).startswith((*MAY_BE_AMBIENT, "tests/"))],
    ids=_name,
)
def test_time_and_chance_come_through_ports(module: Path) -> None:
    """So that every run can be replayed."""
    assert not _ambient(module.read_text())


@pytest.mark.parametrize(
    "source",
    ["import datetime\ndatetime.datetime.now()", "from datetime import datetime as d\nd.now()",
     "from datetime import date\ntoday = date.today", "import time\ntime.time_ns()",
     "import time as t\nt.monotonic()", "from time import monotonic\nf(clock=monotonic)",
     "from uuid import uuid4\nx = uuid4()", "import uuid\nfield(default_factory=uuid.uuid4)",
     "import os\nos.environ['A']", "import os\nos.environ.get('A')",
     "from os import environ\nenviron['A']", "from os import getenv\ngetenv('A')",
     "import secrets\nsecrets.token_bytes(8)", "from random import choice\nchoice('ab')",
     "import numpy as np\nnp.random.default_rng()", "from numpy import random\nrandom.rand()"],
)  # fmt: skip
def test_reaching_around_a_port_would_be_seen(source: str) -> None:
    assert _ambient(source)


def test_what_only_looks_like_it_is_not_taken_for_reaching_around() -> None:
    source = """
from datetime import datetime
self._clock.now(); self.random.bytes(8); at.date(); datetime.fromisoformat(text); time.sleep(1)
"""

    assert not _ambient(source)


def _classes() -> Iterator[type]:
    for module in MODULES:
        if module.parts[-1] == "__main__.py" or "contracts" in module.parts:
            continue
        ring = next(part for part in RINGS if module.is_relative_to(ROOT / part))
        dotted = ".".join(module.relative_to(ROOT / ring).with_suffix("").parts)
        loaded = importlib.import_module(dotted.removesuffix(".__init__"))
        for _, cls in inspect.getmembers(loaded, inspect.isclass):
            if cls.__module__ == loaded.__name__:
                yield cls


def test_only_errors_are_named_so() -> None:
    """A bare past participle is an event, and what ends in Error can be caught."""
    for cls in _classes():
        assert issubclass(cls, BaseException) == cls.__name__.endswith("Error"), cls


def test_errors_of_the_inner_rings_are_of_one_tree() -> None:
    """Adapters, and private names, may be errors that are caught at home; a host sees one tree."""
    from remembrancer.domain.errors import RemembrancerError  # noqa: PLC0415  # after the others

    for cls in _classes():
        at_home = ".adapters." in cls.__module__ or cls.__name__.startswith("_")
        if issubclass(cls, BaseException) and not at_home:
            assert issubclass(cls, RemembrancerError), cls
