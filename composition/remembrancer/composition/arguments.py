"""What a host passes to the facade, seen to be what it says: a typed error, or it can be used.

Value objects check themselves; this is for what stands between them.
"""

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import EntryId, parse_entry_id

_Kind = TypeVar("_Kind")


def instance(value: object, kind: type[_Kind], *, field: str) -> _Kind:
    """Return ``value`` if it is a ``kind``.

    Raises:
        InvalidInputError: it isn't.
    """
    if not isinstance(value, kind):
        raise InvalidInputError(field=field, problem=f"must be a {kind.__name__}")
    return value


def instances(values: object, kind: type[_Kind], *, field: str) -> list[_Kind]:
    """Return what any iterable gives, all of one ``kind``.

    Raises:
        InvalidInputError: it isn't one, or another thing is in it.
    """
    if not isinstance(values, Iterable):
        raise InvalidInputError(field=field, problem=f"must be a list of {kind.__name__}")
    return [instance(one, kind, field=f"{field}[{place}]") for place, one in enumerate(values)]


def entry_id_of(value: UUID | str) -> EntryId:
    """Return an entry's id, which a pack names as a string.

    Raises:
        InvalidInputError: it isn't a UUID, or how one is written.
    """
    if isinstance(value, str):
        return parse_entry_id(value)
    return EntryId(instance(value, UUID, field="entry id"))
