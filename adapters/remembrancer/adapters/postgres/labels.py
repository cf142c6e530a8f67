"""Metadata by which indexes filter, as columns and conditions.

The labels that recall filters by have columns of their own; all other metadata is kept as *marks*,
digests of key and value: enough to compare by, and nothing that could be read.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from remembrancer.application.ports.vector_store import Filter
from remembrancer.domain.canonical_json import canonical_json

WHOSE = ("tenant", "owner")
LABELS = ("scope", "kind", "sensitivity", "state")
_COLUMNS = (*WHOSE, *LABELS)


Whose = tuple[str | None, str | None]
"""Tenant and owner, as far as they are named."""
Row = TypeVar("Row")


class Conditions(NamedTuple):
    """What a filter comes to, for rows of the alias ``one``."""

    tenant: str | None
    """The only one that is asked for, if there is one."""
    owner: str | None
    whose: str
    """On tenant and owner, each beginning with AND; may be empty."""
    labelled: str
    """On all else, as ``whose``."""
    values: dict[str, Any]


def whose(metadata: Mapping[str, str]) -> Whose:
    """Return the tenant and owner that metadata names."""
    return metadata.get("tenant"), metadata.get("owner")


def in_order(groups: Mapping[Whose, list[Row]]) -> list[tuple[Whose, list[Row]]]:
    """Return what belongs to each owner in the order in which owners are locked everywhere."""
    return sorted(groups.items(), key=lambda one: (one[0][0] or "", one[0][1] or ""))


def columns(metadata: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return the values of :data:`LABELS`."""
    return tuple(map(metadata.get, LABELS))


def marks(metadata: Mapping[str, str]) -> list[UUID]:
    """Return the digests of all that has no column."""
    return [_mark(key, value) for key, value in metadata.items() if key not in _COLUMNS]


def conditions(filter: Filter) -> Conditions | None:  # noqa: A002  # The port's word.
    """Turn a filter into SQL; None where nothing can match."""
    wanted = {
        key: [value] if isinstance(value, str) else list(value) for key, value in filter.items()
    }
    if not all(wanted.values()):
        return None
    values: dict[str, Any] = {}
    parts: dict[bool, list[str]] = {True: [], False: []}
    for key in _COLUMNS:
        if key in wanted:
            values[key] = wanted[key]
            parts[key in WHOSE].append(f" AND one.{key} = ANY(%({key})s)")
    for place, key in enumerate(key for key in wanted if key not in _COLUMNS):
        values[f"marks_{place}"] = [_mark(key, value) for value in wanted[key]]
        parts[False].append(f" AND one.marks && %(marks_{place})s::uuid[]")
    return Conditions(
        tenant=_only(wanted.get("tenant")),
        owner=_only(wanted.get("owner")),
        whose="".join(parts[True]),
        labelled="".join(parts[False]),
        values=values,
    )


def _mark(key: str, value: str) -> UUID:
    spelt = canonical_json([key, value])
    return UUID(bytes=hashlib.blake2b(spelt, digest_size=16).digest())


def _only(names: list[str] | None) -> str | None:
    return names[0] if names is not None and len(set(names)) == 1 else None
