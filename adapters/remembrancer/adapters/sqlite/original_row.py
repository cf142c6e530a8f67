"""An original as a row of the vault, and back."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.original_digest import SALT_BYTES

NEVER = 2**63 - 1
"""Stands in ``superseded_at`` while a version is current."""

ID_BYTES = 16
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
        original.sensitivity.word,
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


def to_originals(rows: Sequence[Row], *, store: str) -> list[Original]:
    """Read rows of ``kept_original``.

    Raises:
        StoreCorruptError: a value can't have been written by :func:`to_values`.
    """
    if not rows:
        return []
    try:
        # It looks at every type, and makes the ids.
        return msgspec.convert(_fields(rows), list[Original])
    except (TypeError, ValueError, OverflowError):
        # Not chained: the error of a decoder may hold a part of the document.
        problem = "an original in the vault is damaged"
    raise StoreCorruptError(store=store, problem=problem)


def _fields(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the fields of :class:`Original`.

    Column by column: a loop of C's over each takes half as long as one of Python's over the rows.
    """
    (
        index_ids, entry_ids, versions, tenants, owners, scopes, kinds, sensitivities, recorded,
        superseded, tokens, counters, digests, salts, subjects, metadata, reasons, texts,
    ) = zip(*rows, strict=True)  # fmt: skip
    right = (
        None not in index_ids
        and min(versions) >= 1
        and _are_as_long(entry_ids, ID_BYTES)
        and _are_as_long(digests, DIGEST_BYTES)
        and _are_as_long(salts, SALT_BYTES)
    )
    if not right:
        raise ValueError("not rows of ours")
    columns = (
        tenants,
        owners,
        entry_ids,
        versions,
        scopes,
        kinds,
        sensitivities,
        texts,
        salts,
        map(bytes.hex, digests),
        tokens,
        counters,
        map(_SUBJECTS, subjects),
        map(_METADATA, metadata),
        [_EPOCH + at * _MICROSECOND for at in recorded],
        reasons,
        [None if at == NEVER else _EPOCH + at * _MICROSECOND for at in superseded],
    )
    return list(zip(*columns, strict=True))


def _are_as_long(values: Sequence[bytes], length: int) -> bool:
    return set(map(len, values)) == {length}
