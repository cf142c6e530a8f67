"""Query keys: what must be the same for a prepared vector to be used (design 4.3).

A key is BLAKE2b, keyed with the installation's secret so that a short question can't be guessed
back from it, over the canonical JSON of ``[conditions, query]``: everything that stays the same
from query to query, then the complete recall query.

A lookup is to cost about as much as hashing costs, so the conditions are encoded and hashed once
a context, and a query's JSON is put together from its encoded strings: the spelling of
:func:`remembrancer.domain.canonical_json.canonical_json` to the byte, at a quarter of its time.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC
from json.encoder import encode_basestring as quoted
from typing import Any

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.recall import RecallContext, RecallQuery

KEY_BYTES = 32
SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 64
"""BLAKE2b takes no longer key."""

_QUERY = b"rmb query key 1"
_CONTEXT = b"rmb context 1"
_REQUEST = b"rmb request 1"


class QueryKeys:
    """Makes the keys of one installation under one admitted configuration.

    Safe with threads; keeps one context's beginning of a hash, nothing that grows.
    """

    def __init__(self, *, secret: bytes, conditions: Mapping[str, Any]) -> None:
        """Take the installation's secret and the configuration's part of every key.

        ``conditions`` is plain JSON: :attr:`Configuration.key_conditions`.
        """
        if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
            raise ValueError(f"the secret must be {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
        self._secret = secret
        self._conditions = dict(conditions)
        self._begun: tuple[RecallContext, hashlib.blake2b] | None = None

    def key(self, query: RecallQuery, context: RecallContext) -> bytes:
        """Return the key of ``query`` in ``context``, 32 bytes."""
        begun = self._begun
        if begun is None or (begun[0] is not context and begun[0] != context):
            begun = self._begin(context)
        hashed = begun[1].copy()
        hashed.update((query_json(query) + "]").encode())
        return hashed.digest()

    def context(self, context: RecallContext) -> str:
        """Return the keyed digest of what the caller states, 64 hexadecimal digits."""
        return self._keyed(_CONTEXT, canonical_json(context.model_dump(mode="json"))).hexdigest()

    def request(self, keys: Sequence[bytes]) -> str:
        """Return the keyed digest of a request for these keys' vectors, 64 hexadecimal digits."""
        return self._keyed(_REQUEST, b"".join(keys)).hexdigest()

    def __repr__(self) -> str:
        return "QueryKeys()"

    def _begin(self, context: RecallContext) -> tuple[RecallContext, hashlib.blake2b]:
        conditions = self._conditions | {"context": context.model_dump(mode="json")}
        begun = (context, self._keyed(_QUERY, b"[" + canonical_json(conditions) + b","))
        self._begun = begun  # One assignment: another thread sees the old pair or the new one.
        return begun

    def _keyed(self, purpose: bytes, data: bytes) -> hashlib.blake2b:
        return hashlib.blake2b(data, key=self._secret, person=purpose, digest_size=KEY_BYTES)


def query_json(query: RecallQuery) -> str:
    """Return the complete recall query as canonical JSON.

    Times are written in UTC: the same instant in two zones is the same question.
    """
    as_of = query.as_of
    # ``_value_`` is what the property ``value`` returns, at a third of its time.
    return (
        f'{{"as_of":{"null" if as_of is None else quoted(as_of.astimezone(UTC).isoformat())}'
        f',"candidate_selection":"{query.candidate_selection._value_}"'
        f',"kind":"{query.kind._value_}"'
        f',"limit":{query.limit}'
        f',"owner":{quoted(query.owner)}'
        f',"principal":{quoted(query.principal)}'
        f',"question":{quoted(query.question)}'
        f',"read_ceiling":"{query.read_ceiling._value_}"'
        f',"scopes":[{",".join(map(quoted, query.scopes))}]'
        f',"subjects":[{",".join(map(quoted, query.subjects))}]'
        f',"tenant":{quoted(query.tenant)}}}'
    )
