"""Scopes: paths such as ``project/alpha``; a path covers itself and what lies under it."""

from collections.abc import Collection
from typing import Annotated

from pydantic import AfterValidator

from remembrancer.domain.parsed import Name

_DOTS = frozenset({".", ".."})


def _path(value: str) -> str:
    parts = value.split("/")
    if not (all(map(str.strip, parts)) and _DOTS.isdisjoint(parts)):
        raise ValueError("must be names joined by single slashes, such as project/alpha")
    return value


Scope = Annotated[Name, AfterValidator(_path)]
"""A scope path: names joined by single slashes."""


def covers(scope: str, other: str) -> bool:
    """Say whether ``scope`` covers ``other``.

    ``project`` covers ``project/alpha``, not ``project-x``.
    """
    return other == scope or other.startswith(f"{scope}/")


def covered_by_any(scopes: Collection[str], other: str) -> bool:
    """Say whether one of ``scopes`` covers ``other``; quickly, where they are a set.

    Asked of every scope and every candidate there is: it looks for the few paths that ``other``
    lies under instead of trying all of ``scopes``.
    """
    if other in scopes:
        return True
    end = other.find("/")
    while end != -1:
        if other[:end] in scopes:
            return True
        end = other.find("/", end + 1)
    return False
