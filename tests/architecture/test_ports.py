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
STORAGE = {"entry_vault", "event_log", "ledger_repository", "session_vault", "sparse_index",
           "transactions", "vector_indexes", "vector_store"}  # fmt: skip
CONTRACTS = ROOT / "tests/contracts/remembrancer/contracts"
INDEX_QUERIES = {"query"}


def _imports(path: Path) -> set[str]:
    return {
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }


@pytest.mark.parametrize("noun", PORTS)
def test_port_has_a_contract_suite(noun: str) -> None:
    suite = CONTRACTS / f"{noun}.py"

    assert suite.exists()
    assert any(
        isinstance(node, ast.ClassDef) and node.name.endswith("Contract")
        for node in ast.parse(suite.read_text()).body
    )


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


@pytest.mark.parametrize("suite", sorted(CONTRACTS.glob("*.py")), ids=lambda path: path.stem)
def test_contract_suite_belongs_to_a_port(suite: Path) -> None:
    """Or says in its docstring what it lends to the suites."""
    tree = ast.parse(suite.read_text())
    contracts = [node for node in tree.body if isinstance(node, ast.ClassDef)
                 and node.name.endswith("Contract")]  # fmt: skip

    assert suite.stem in PORTS or not contracts
    assert ast.get_docstring(tree)


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
