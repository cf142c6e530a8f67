"""An original as a row of the vault, and back."""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import SALT_BYTES
from remembrancer.domain.sensitivity import Sensitivity

NEVER = 2**63 - 1
"""Stands in ``superseded_at`` while a version is current."""

DIGEST_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SENSITIVITIES = {level.value: level for level in Sensitivity}
_DECODER = json.JSONDecoder()

Row = tuple[Any, ...]
"""Values in the order of the columns of ``kept_original``."""


def to_microseconds(at: datetime) -> int:
    """Return microseconds since 1970, UTC."""
    return (at - _EPOCH) // _MICROSECOND


def to_values(original: Original, *, owned_scope: int) -> Row:
    """Return what is inserted for a version that is current."""
    entry_id = original.entry_id.bytes
    return (
        entry_id,
        entry_id,
        original.version,
        owned_scope,
        original.kind,
        original.sensitivity.value,
        to_microseconds(original.recorded_at),
        NEVER,
        original.tokens,
        original.token_counter,
        bytes.fromhex(original.digest),
        original.salt,
        canonical_json(original.subjects).decode() if original.subjects else "[]",
        canonical_json(original.metadata).decode() if original.metadata else "{}",
        original.reason,
        original.text,
    )


def to_original(row: Row, *, store: str, known: Mapping[bytes, EntryId]) -> Original:
    """Read a row of ``kept_original``; ``known`` are ids that needn't be made once more.

    Raises:
        StoreCorruptError: a value can't have been written by :func:`to_values`.
    """
    try:
        return _original(row, known)
    except (KeyError, TypeError, ValueError, OverflowError):
        # Not chained: the error of a JSON decoder holds the whole document.
        problem = "an original in the vault is damaged"
    raise StoreCorruptError(store=store, problem=problem)


def _original(row: Row, known: Mapping[bytes, EntryId]) -> Original:
    _, entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at, *rest = row
    superseded_at, tokens, counter, digest, salt, subjects, metadata, reason, text = rest
    if None in row or len(digest) != DIGEST_BYTES or len(salt) != SALT_BYTES or version < 1:
        raise ValueError("not a row of ours")
    return Original(
        tenant=tenant,
        owner=owner,
        entry_id=known.get(entry_id) or EntryId(UUID(bytes=entry_id)),
        version=version,
        scope=scope,
        kind=kind,
        sensitivity=_SENSITIVITIES[sensitivity],
        text=text,
        salt=salt,
        digest=digest.hex(),
        tokens=tokens,
        token_counter=counter,
        subjects=_subjects(subjects),
        metadata=_metadata(metadata),
        reason=reason,
        recorded_at=_EPOCH + timedelta(microseconds=recorded_at),
        superseded_at=(
            None if superseded_at == NEVER else _EPOCH + timedelta(microseconds=superseded_at)
        ),
    )


def _subjects(stored: str) -> tuple[str, ...]:
    if stored == "[]":
        return ()
    subjects = _decoded(stored)
    if not isinstance(subjects, list):
        raise TypeError("not a list")
    return tuple(_strings(subjects))


def _metadata(stored: str) -> Mapping[str, str]:
    metadata = _decoded(stored)
    if not isinstance(metadata, dict):
        raise TypeError("not an object")
    _strings(metadata.values())
    return metadata


def _decoded(stored: str) -> Any:
    # Canonical JSON has no white space around it, whose search is most of the time of json.loads.
    value, end = _DECODER.raw_decode(stored)
    if end != len(stored):
        raise ValueError("not canonical JSON")
    return value


def _strings(values: Collection[Any]) -> Collection[str]:
    for value in values:
        if not isinstance(value, str):
            raise TypeError("not a string")
    return values
