"""An original as a row of the vault, and back."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec.json

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import SALT_BYTES
from remembrancer.domain.sensitivity import Sensitivity

COLUMNS = (
    "tenant, owner, entry_id, version, scope, kind, sensitivity, recorded_at, superseded_at,"
    " tokens, token_counter, digest, salt, subjects, metadata, reason, text"
)
"""What :func:`to_original` reads."""

DIGEST_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SENSITIVITIES = {level.value: level for level in Sensitivity}
_SPELT = msgspec.json.Encoder(order="sorted").encode
"""Canonical JSON of strings: the same bytes as ``domain.canonical_json`` writes, in a tenth."""
_SUBJECTS = msgspec.json.Decoder(tuple[str, ...]).decode
_METADATA = msgspec.json.Decoder(dict[str, str]).decode

Row = tuple[Any, ...]
"""Values in the order of :data:`COLUMNS`."""


def to_microseconds(at: datetime) -> int:
    """Return microseconds since 1970, UTC."""
    return (at - _EPOCH) // _MICROSECOND


def to_columns(originals: Sequence[Original]) -> list[list[Any]]:
    """Return what is inserted for current versions of one owner, a list for each column.

    The columns are the index's id, the entry's id, then those of :data:`COLUMNS` from the version
    on, without ``superseded_at``.
    """
    rows = [
        (
            one.entry_id,
            one.entry_id,
            one.version,
            one.scope,
            one.kind,
            one.sensitivity.word,
            to_microseconds(one.recorded_at),
            one.tokens,
            one.token_counter,
            bytes.fromhex(one.digest),
            one.salt,
            _SPELT(one.subjects).decode(),
            _SPELT(one.metadata).decode(),
            one.reason.encode(),
            one.text.encode(),
        )
        for one in originals
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def to_original(row: Row, *, store: str) -> Original:
    """Read a row of :data:`COLUMNS`.

    Raises:
        StoreCorruptError: a value can't have been written by :func:`to_columns`.
    """
    try:
        return _original(row)
    except (KeyError, TypeError, ValueError, OverflowError):
        # Not chained: the error of a decoder may hold a part of the document.
        problem = "an original in the vault is damaged"
    raise StoreCorruptError(store=store, problem=problem)


def _original(row: Row) -> Original:
    tenant, owner, entry_id, version, scope, kind, sensitivity, recorded_at, *rest = row
    superseded_at, tokens, counter, digest, salt, subjects, metadata, reason, text = rest
    if len(digest) != DIGEST_BYTES or len(salt) != SALT_BYTES or not isinstance(entry_id, UUID):
        raise ValueError("not a row of ours")
    return Original(
        tenant=tenant,
        owner=owner,
        entry_id=EntryId(entry_id),
        version=version,
        scope=scope,
        kind=kind,
        sensitivity=_SENSITIVITIES[sensitivity],
        text=text.decode(),
        salt=salt,
        digest=digest.hex(),
        tokens=tokens,
        token_counter=counter,
        subjects=_SUBJECTS(subjects),
        metadata=_METADATA(metadata),
        reason=reason.decode(),
        recorded_at=_EPOCH + recorded_at * _MICROSECOND,
        superseded_at=None if superseded_at is None else _EPOCH + superseded_at * _MICROSECOND,
    )
