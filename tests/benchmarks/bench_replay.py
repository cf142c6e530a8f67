"""Replaying a pack of ten entries, against the bare reading of its events and texts.

Bare reading is what any replay must do, by apsw alone: select the stream's events, check their
chain of hashes and parse their JSON, select the ten texts with their labels and check their
digests, and read the host's items.  Nothing is quoted, permitted or put together by it.
The last row compares with reading that checks nothing.
"""

import hashlib
import hmac
import json
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
from tests.benchmarks.corpus import TENANT, Corpus, a_context, a_query
from tests.benchmarks.row import Row, interleaved

from remembrancer.composition import Remembrancer, embedded
from remembrancer.domain import ContextItem, Sensitivity
from remembrancer.domain.hash_chain import event_hash
from remembrancer.domain.l3_selection import L3Selection

ENTRIES = 2_000
ROUNDS = 401
RATIO_MAX = 2.0
BUDGET = 4_000
_EVENTS = (
    "SELECT topic, state, predecessor_hash, event_hash FROM stored_events"
    " WHERE originator_id = ? ORDER BY originator_version"
)
_TEXTS = (
    "SELECT version || tenant || owner || scope || kind || sensitivity || metadata, text, salt,"
    " digest FROM kept_original WHERE index_id IN (SELECT value FROM carray(?))"
)
_ITEMS = "SELECT items FROM session_items WHERE selection_id = ? AND number = ?"
_KEY = "SELECT key FROM session_key WHERE selection_id = ?"


def measure() -> list[Row]:
    """Return the comparison."""
    corpus = Corpus(3)
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "memory.db") as memory:
        memory.remember_many(list(corpus.entries(ENTRIES, owners=4)))
        pack = memory.build_pack(
            "session-1",
            "plan",
            a_query(corpus.question()),
            a_context(),
            items=[ContextItem(layer=0, id="rules", text=corpus.text(), required=True)],
            token_budget=BUDGET,
        )
        entries = pack.selection.entries
        keys = tuple(one.entry_id.bytes for one in entries)
        stream = L3Selection.create_id(TENANT, "session-1", "plan")
        store: Any = memory._container.store()
        connection: apsw.Connection = store.transactions._database.connection()
        if _replayed(memory) != pack.digest or len(keys) != 10:
            raise SystemExit("the pack isn't what it should be")
        ours, checked, unchecked = interleaved(
            [
                lambda: _replayed(memory),
                lambda: _read(connection, stream, keys, check=True),
                lambda: _read(connection, stream, keys, check=False),
            ],
            rounds=ROUNDS,
        )
    return [
        Row(
            what="replay a pack of ten entries",
            ours=ours,
            baseline=checked,
            against="bare, checked reading of its events and texts",
            at_most=RATIO_MAX,
        ),
        Row(what="the same", ours=ours, baseline=unchecked, against="reading that checks nothing"),
    ]


def _replayed(memory: Remembrancer) -> str:
    return memory.replay(
        "session-1",
        "plan",
        tenant=TENANT,
        principal="agent-7",
        scopes=("project",),
        read_ceiling=Sensitivity.INTERNAL,
    ).digest


def _read(
    connection: apsw.Connection, stream: UUID, keys: tuple[bytes, ...], *, check: bool
) -> Any:
    with connection:
        events: list[Any] = connection.execute(_EVENTS, (stream.bytes,)).fetchall()
        states = [json.loads(state) for _, state, _, _ in events]
        texts: list[Any] = connection.execute(_TEXTS, (apsw.carray(keys),)).fetchall()
        items = json.loads(connection.execute(_ITEMS, (stream.bytes, 1)).get)
        key = connection.execute(_KEY, (stream.bytes,)).get
    if check:
        for topic, state, predecessor, own in events:
            if event_hash(predecessor, topic, state) != own:
                raise SystemExit("an event isn't what was recorded")
        for _, text, salt, digest in texts:
            if hmac.digest(salt, text.encode(), hashlib.sha256) != digest:
                raise SystemExit("a text isn't what was recorded")
    return states, texts, items, key
