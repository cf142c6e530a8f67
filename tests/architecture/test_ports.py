"""One noun, one file name: in port, adapters, contract suite and enrolments."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTS = sorted(
    path.stem
    for path in (ROOT / "application/remembrancer/application/ports").glob("*.py")
    if path.stem != "__init__"
)
STORAGE = {"archive", "entry_vault", "event_log", "ledger_repository", "session_vault",
           "sparse_index", "transactions", "vector_indexes", "vector_store"}  # fmt: skip
CONTRACTS = ROOT / "tests/contracts/remembrancer/contracts"
SUITES = sorted(CONTRACTS.glob("*.py"))
INDEX_QUERIES = {"query"}


def _imports(path: Path) -> set[str]:
    return {
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }


def _classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]


def _contracts(suite: Path) -> list[str]:
    return [cls.name for cls in _classes(suite) if cls.name.endswith("Contract")]


def _bases(path: Path) -> set[str]:
    return {base.id for cls in _classes(path) for base in cls.bases if isinstance(base, ast.Name)}


def _port_of(suite: Path) -> str | None:
    """Return the port whose suite this is, whole or a part."""
    nouns = [noun for noun in PORTS if suite.stem == noun or suite.stem.startswith(f"{noun}_")]
    return max(nouns, key=len, default=None)


@pytest.mark.parametrize("noun", PORTS)
def test_port_has_a_contract_suite(noun: str) -> None:
    suite = CONTRACTS / f"{noun}.py"

    assert suite.exists()
    assert _contracts(suite)


@pytest.mark.parametrize("noun", PORTS)
def test_adapters_of_a_port_are_enrolled(noun: str) -> None:
    enrolment = ROOT / f"tests/adapters/test_{noun}.py"

    assert enrolment.exists()
    assert f"remembrancer.contracts.{noun}" in _imports(enrolment)


@pytest.mark.parametrize("noun", sorted(STORAGE))
@pytest.mark.parametrize("technology", ["memory", "sqlite"])
def test_storage_has_an_adapter_in_memory_and_on_sqlite(noun: str, technology: str) -> None:
    enrolment = ROOT / f"tests/adapters/test_{noun}.py"

    wanted = f"remembrancer.adapters.{technology}"
    assert any(module.startswith(wanted) for module in _imports(enrolment))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_module_of_contracts_says_what_it_lends_to_the_suites(suite: Path) -> None:
    assert ast.get_docstring(ast.parse(suite.read_text()))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_what_holds_tests_is_named_a_contract(suite: Path) -> None:
    """And is never collected by itself: pytest looks for ``Test...``."""
    holding = [
        cls.name
        for cls in _classes(suite)
        if any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
               for node in cls.body)
    ]  # fmt: skip

    assert set(holding) == set(_contracts(suite))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_contract_belongs_to_a_port(suite: Path) -> None:
    """A part of a port's suite is named for it: the port, an underscore, the part."""
    assert not _contracts(suite) or _port_of(suite)


@pytest.mark.parametrize(
    ("suite", "contract"),
    [(suite, contract) for suite in SUITES for contract in _contracts(suite)],
    ids=lambda value: value if isinstance(value, str) else value.stem,
)
def test_contract_is_kept_by_an_adapter(suite: Path, contract: str) -> None:
    """By an enrolment, or through the port's suite that goes on with it."""
    noun = _port_of(suite)
    here = [CONTRACTS / f"{noun}.py", ROOT / f"tests/adapters/test_{noun}.py"]

    assert contract in {base for path in here for base in _bases(path)}


def test_use_cases_ask_indexes_with_a_filter() -> None:
    """An adapter can't be called without a tenant filter from a use case (design 5).

    Here that a filter is always given; that it names the tenant is tested on the use case.
    """
    bare = [
        f"{path.name}:{node.lineno}"
        for path in (ROOT / "application").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in INDEX_QUERIES
        and len(node.args) + len([one for one in node.keywords if one.arg == "filter"]) < 3
    ]

    assert not bare
