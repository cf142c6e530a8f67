"""An original as a row of the vault, and back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import SALT_BYTES

NEVER = 2**63 - 1
"""Stands in ``superseded_at`` while a version is current."""

DIGEST_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SPELT = msgspec.json.Encoder(order="sorted").encode
"""Canonical JSON of strings: the same bytes as ``domain.canonical_json`` writes, in a tenth."""
_SUBJECTS = msgspec.json.Decoder(tuple[str, ...]).decode
_METADATA = msgspec.json.Decoder(dict[str, str]).decode

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
        _SPELT(original.subjects).decode(),
        _SPELT(original.metadata).decode(),
        original.reason,
        original.text,
    )


def to_originals(
    rows: Sequence[Row], *, store: str, known: Mapping[bytes, EntryId]
) -> list[Original]:
    """Read rows of ``kept_original``; ``known`` are ids that needn't be made once more.

    Raises:
        StoreCorruptError: a value can't have been written by :func:`to_values`.
    """
    try:
        # It looks at every type, and takes half as long as the constructor of a frozen class.
        return msgspec.convert([_fields(row, known) for row in rows], list[Original])
    except (KeyError, TypeError, ValueError, OverflowError):
        # Not chained: the error of a decoder may hold a part of the document.
        problem = "an original in the vault is damaged"
    raise StoreCorruptError(store=store, problem=problem)


def _fields(row: Row, known: Mapping[bytes, EntryId]) -> dict[str, Any]:
    (
        index_id, entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at,
        superseded_at, tokens, counter, digest, salt, subjects, metadata, reason, text,
    ) = row  # fmt: skip
    right = len(digest) == DIGEST_BYTES and len(salt) == SALT_BYTES and version >= 1
    if index_id is None or not right:
        raise ValueError("not a row of ours")
    return {
        "tenant": tenant,
        "owner": owner,
        "entry_id": known.get(entry_id) or UUID(bytes=entry_id),
        "version": version,
        "scope": scope,
        "kind": kind,
        "sensitivity": sensitivity,
        "text": text,
        "salt": salt,
        "digest": digest.hex(),
        "tokens": tokens,
        "token_counter": counter,
        "subjects": _SUBJECTS(subjects),
        "metadata": _METADATA(metadata),
        "reason": reason,
        "recorded_at": _EPOCH + recorded_at * _MICROSECOND,
        "superseded_at": (
            None if superseded_at == NEVER else _EPOCH + superseded_at * _MICROSECOND
        ),
    }
