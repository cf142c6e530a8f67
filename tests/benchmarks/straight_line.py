"""Remembering one entry in a straight line: what it takes in Python when nothing stands around it.

It embeds and counts, makes id, digest and event, and writes the rows that ours writes, in one
durable transaction.  There is no layer, no other thread, process or tenant, nothing is checked,
asked for or told, and no error has a name.  Its time is the least that ours can come near.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha1
from typing import Any

import apsw
import msgspec
import numpy as np

from remembrancer.adapters.sqlite.original_row import NEVER
from remembrancer.adapters.sqlite.sparse_index import _LABEL, _LAST
from remembrancer.adapters.sqlite.sparse_query import SERIAL_BITS
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.domain import NewEntry
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.identity import NAMESPACE
from remembrancer.domain.original_digest import SALT_BYTES, original_digest
from remembrancer.domain.search_text import prepared

_TOPIC = "remembrancer.memory_entry.entry_remembered"
LABEL_NAMES = ("tenant", "owner", "scope", "kind", "sensitivity", "state")
_COUNTER = "wordllama-l2-supercat@1"
_encoded = msgspec.json.Encoder(order="sorted").encode


class StraightLine:
    """A program that remembers, with the statements that ours wrote with."""

    def __init__(self, connection: apsw.Connection, statements: Sequence[str]) -> None:
        self.connection = connection
        self._model = StaticModel()
        (
            self._event, self._scope, self._original, self._document, self._text, self._words,
            self._counted, self._vector_row, self._vector,
        ) = (one for one in statements if "sparse_metadata" not in one)  # fmt: skip
        self._metadata = next(one for one in statements if "sparse_metadata" in one)

    def remember(self, entry: NewEntry) -> None:
        """Remember it, durably."""
        execute = self.connection.execute
        ids = np.frombuffer(self._model.token_ids(entry.text), dtype=np.intc)
        total = np.add.reduce(self._model.rows().take(ids), axis=0, dtype=np.float64)
        vector = (total / len(ids)).astype(np.float32).tobytes()
        entry_id, salt, at = os.urandom(16), os.urandom(SALT_BYTES), datetime.now(UTC)
        digest = original_digest(salt, entry.text)
        word = entry.sensitivity.word
        execute("BEGIN IMMEDIATE")
        self._append(entry, entry_id, digest, at)
        number = execute(self._scope, (entry.tenant, entry.owner, entry.scope, 1)).get
        execute(
            self._original,
            (
                *(entry_id, entry_id, 1, number, entry.kind, word),
                *(int(at.timestamp() * 1_000_000), NEVER, len(ids), _COUNTER),
                *(bytes.fromhex(digest), salt),
                *(_encoded(entry.subjects).decode(), _encoded(entry.metadata).decode()),
                *("", entry.text),
            ),
        )
        labels = (entry.tenant, entry.owner, entry.scope, entry.kind, word, "current")
        self._add_words(entry, entry_id, labels)
        spelt = dict(zip(LABEL_NAMES, labels, strict=True))
        for subject in entry.subjects:
            spelt[f"subject:{subject}"] = "1"
        row: int = execute("SELECT max(id) FROM vector_row_1").get + 1
        execute(self._vector_row, (row, entry_id, _encoded(spelt).decode()))
        execute(self._vector, (row, vector))
        execute("COMMIT")

    def _append(self, entry: NewEntry, entry_id: bytes, digest: str, at: datetime) -> None:
        name = _encoded(["memory_entry", entry.tenant, entry_id.hex()])
        state = _encoded(
            {
                "originator_topic": "remembrancer.memory_entry",
                "timestamp": {"_type_": "datetime_iso", "_data_": at.isoformat()},
                "tenant": entry.tenant,
                "owner": entry.owner,
                "entry_id": {"_type_": "uuid_hex", "_data_": entry_id.hex()},
                "digest": digest,
                "length": len(entry.text.encode()),
                "scope": entry.scope,
                "kind": entry.kind,
                "sensitivity": entry.sensitivity.word,
            }
        )
        stream = sha1(NAMESPACE.bytes + name, usedforsecurity=False).digest()[:16]
        own = event_hash(GENESIS, _TOPIC, state)
        self.connection.execute(self._event, (stream, 1, _TOPIC, state, GENESIS, own))

    def _add_words(self, entry: NewEntry, entry_id: bytes, labels: tuple[str, ...]) -> None:
        execute = self.connection.execute
        found: Any = execute(_LABEL, labels).fetchone()
        owner, label = found
        low = owner << SERIAL_BITS
        found = execute(_LAST, (low, low + (1 << SERIAL_BITS) - 1)).fetchone()
        number, text = (found[0] or low) + 1, (found[1] or 0) + 1
        words = prepared("\n".join((entry.text, *entry.subjects)))
        execute(self._document, (number, entry_id, label, text))
        execute(self._text, (text, words))
        execute(self._words, (number, words))
        for subject in entry.subjects:
            execute(self._metadata, (number, f"subject:{subject}", "1"))
        execute(self._counted, (1, owner))
