"""A rule broken on purpose: the text of one function replaced before its module is imported.

A mutation names module, function and text.  Where the text isn't there exactly once any more, it
fails loudly: a rule that moved must not look like one that is kept.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from typing_extensions import override


class StaleMutationError(Exception):
    """The text to replace isn't there, or not once."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One rule and how it is broken."""

    name: str
    module: str
    """Dotted, under ``remembrancer``."""
    place: str
    """Qualified name of the function, class or constant that the text stands in."""
    old: str
    new: str

    @property
    def full_module(self) -> str:
        """The module's whole name."""
        return f"remembrancer.{self.module}"

    def applied(self, source: str) -> str:
        """Return the module's source with the rule broken.

        Raises:
            StaleMutationError: the text isn't in the named place exactly once.
        """
        first, last = self._lines(source)
        lines = source.splitlines(keepends=True)
        segment = "".join(lines[first - 1 : last])
        if segment.count(self.old) != 1:
            raise StaleMutationError(
                f"{self.name}: {segment.count(self.old)} times in {self.module}:{self.place},"
                f" not once: {self.old!r}"
            )
        changed = segment.replace(self.old, self.new)
        return "".join((*lines[: first - 1], changed, *lines[last:]))

    def _lines(self, source: str) -> tuple[int, int]:
        body: Sequence[ast.stmt] = ast.parse(source).body
        found: ast.stmt | None = None
        for name in self.place.split("."):
            found = next((one for one in body if name in _names(one)), None)
            if found is None:
                raise StaleMutationError(f"{self.name}: no {self.place} in {self.module}")
            body = getattr(found, "body", [])
        if found is None or found.end_lineno is None:
            raise StaleMutationError(f"{self.name}: no {self.place} in {self.module}")
        return found.lineno, found.end_lineno


def _names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {one.id for one in targets if isinstance(one, ast.Name)}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module, and loads it with its rule broken."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutation.full_module:
            return None
        sys.meta_path.remove(self)
        try:
            found = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if found is None or found.origin is None:
            raise StaleMutationError(f"{self._mutation.name}: no module {fullname}")
        loader = _Loader(fullname, found.origin)
        loader.mutation = self._mutation
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=loader)


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the changed source; never what was compiled before."""

    mutation: Mutation

    @override
    def get_code(self, fullname: str) -> object:  # type: ignore[override]  # a code object
        source = self.get_data(self.path).decode()
        return compile(self.mutation.applied(source), self.path, "exec", dont_inherit=True)


def install(mutation: Mutation) -> None:
    """Break the rule in this process, from now on.

    Raises:
        StaleMutationError: the module is imported already.
    """
    if mutation.full_module in sys.modules:
        raise StaleMutationError(f"{mutation.name}: {mutation.full_module} is imported already")
    sys.meta_path.insert(0, _Finder(mutation))
