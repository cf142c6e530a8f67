"""Cases 11 to 16 and 22 to 24, each as a whole, through the public face."""

import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from remembrancer.composition import Remembrancer, embedded
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain import (
    ContextItem,
    EntryId,
    NewEntry,
    RecallContext,
    RecallKind,
    RecallQuery,
    RemembrancerError,
    Sensitivity,
)
from remembrancer.domain.errors import EntryErasedError, InvalidInputError

CONTEXT = RecallContext(
    policy_version="p1",
    retrieval_policy_version="r1",
    surface="cli",
    task_digest="t",
    sensitivity_floor=Sensitivity.INTERNAL,
)


def an_entry(text: str, **changes: Any) -> NewEntry:
    plain: dict[str, Any] = {
        "tenant": "acme",
        "owner": "ana",
        "scope": "project/alpha",
        "text": text,
        "sensitivity": Sensitivity.INTERNAL,
    }
    return NewEntry(**plain | changes)


def a_query(question: str, **changes: Any) -> RecallQuery:
    plain: dict[str, Any] = {
        "tenant": "acme",
        "owner": "ana",
        "principal": "agent-7",
        "scopes": ("project",),
        "read_ceiling": Sensitivity.INTERNAL,
        "question": question,
    }
    return RecallQuery(**plain | changes)


def replayed(memory: Remembrancer, **changes: Any) -> Any:
    plain: dict[str, Any] = {
        "tenant": "acme",
        "principal": "agent-7",
        "scopes": ("project",),
        "read_ceiling": Sensitivity.INTERNAL,
    }
    return memory.replay("s", "plan", **plain | changes)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Remembrancer]:
    with embedded(tmp_path / "memory.db") as memory:
        yield memory


# -- 11: the crowded neighbour -----------------------------------------------

CROWD = 5_000


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("limit", [5, 4_097])
def test_a_crowded_neighbour_takes_no_place(tmp_path: Path, limit: int, *, legacy: bool) -> None:
    with embedded(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
        memory.remember_many(
            [an_entry("invoice service retries", owner="crowd") for _ in range(CROWD)]
        )
        mine = memory.remember_many(
            [an_entry(f"an invoice for {number} of the others") for number in range(5)]
        )
        memory.remember_many([an_entry("invoice", scope="private") for _ in range(5)])

        query = a_query(
            "invoice service retries",
            limit=limit,
            candidate_selection="legacy" if legacy else "hybrid",
        )
        found = memory.recall(query, CONTEXT)

        assert {one.entry_id for one in found.entries} == set(mine)
        assert found.left_out == ()


# -- 13: erase and grep ------------------------------------------------------

CANARIES = tuple(
    f"canary{what}"
    for what in ["text", "subject", "key", "value", "question", "item", "reason", "idempotency"]
)


def _use_with_canaries(memory: Remembrancer) -> tuple[EntryId, list[object]]:
    """Remember, correct, select and pack a canary; return its id and every object on the way."""
    entry = an_entry(
        "the canarytext of this invoice",
        subjects=("canarysubject",),
        metadata={"canarykey": "canaryvalue"},
        idempotency_key="canaryidempotency",
    )
    entry_id = memory.remember(entry)
    memory.correct(entry_id, text="a second canarytext", reason="canaryreason, in words")
    query = a_query("canaryquestion", kind=RecallKind.PEOPLE, subjects=("canarysubject",), limit=3)
    item = ContextItem(layer=0, id="rules", text="canaryitem", required=True)
    pack = memory.build_pack("s", "plan", query, CONTEXT, items=[item], token_budget=900)
    again = replayed(memory)
    assert "canarytext" in pack.text
    assert "canaryitem" in pack.text
    found = memory.recall(query, CONTEXT)
    selection = memory.select("s", "plan", query, CONTEXT)
    objects: list[object] = [entry, query, item, pack, again, found, selection, memory]
    objects += [*found.entries, memory.status(), memory._container, memory._container.store()]
    return entry_id, objects


def _refusals(memory: Remembrancer, entry_id: EntryId) -> list[str]:
    """Return every word of the errors that a canary can provoke, with their causes."""
    calls: list[Any] = [
        lambda: an_entry("canarytext \ud83d"),
        lambda: an_entry("canarytext" * 200_000),
        lambda: an_entry("x", subjects=("canarysubject\n",)),
        lambda: an_entry("x", metadata={"canarykey\n": "canaryvalue"}),
        lambda: an_entry("x", canarykey="canaryvalue"),
        lambda: a_query("canaryquestion \ud83d"),
        lambda: ContextItem(layer=9, id="x", text="canaryitem"),
        lambda: memory.remember(an_entry("canarytext", idempotency_key="canaryidempotency")),
        lambda: memory.correct(entry_id, text="canarytext \ud83d", reason="canaryreason"),
        lambda: memory.correct(entry_id, metadata={"": "canaryvalue"}, reason="canaryreason"),
        lambda: memory.build_pack(
            "t",
            "plan",
            a_query("canaryquestion"),
            CONTEXT,
            items=[ContextItem(layer=0, id="rules", text="canaryitem " * 99, required=True)],
            token_budget=3,
        ),
    ]
    told = []
    for call in calls:
        with pytest.raises(RemembrancerError) as refused:
            call()
        told.append("".join(traceback.format_exception_only(refused.value)))
        told.append(repr(refused.value) + str(vars(refused.value)))
        told.append(repr(refused.value.__cause__) + repr(refused.value.__context__))
    return told


def _without_canaries(text: str) -> None:
    assert not [one for one in CANARIES if one in text]


def test_erased_and_looked_for_everywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Case 13, in one process: files, logs at DEBUG, exceptions, reprs."""
    caplog.set_level(logging.DEBUG)
    with embedded(tmp_path / "memory.db") as memory:
        entry_id, objects = _use_with_canaries(memory)
        _without_canaries("\n".join(map(repr, objects)))
        _without_canaries("\n".join(_refusals(memory, entry_id)))

        erasure = memory.erase(entry_id, reason="canaryreason, in words")
        session = memory.erase_session("s", tenant="acme")

        assert not erasure.pending
        assert not session.pending
        with pytest.raises(EntryErasedError):
            memory.correct(entry_id, text="canarytext", reason="edited")
        left = bytes_under(tmp_path)
        again = replayed(memory)
        assert {one.reason for one in again.differences} == {"erased"}
        _without_canaries(again.text + repr(again))
    for canary in CANARIES:
        assert canary.encode() not in left
        assert canary.encode() not in bytes_under(tmp_path)
    _without_canaries(caplog.text)
    _without_canaries("".join(capfd.readouterr()))


def test_what_is_not_erased_is_still_there(tmp_path: Path) -> None:
    """The look in the files would find a canary that is there."""
    with embedded(tmp_path / "memory.db") as memory:
        memory.remember(an_entry("canarytext"))

    assert b"canarytext" in bytes_under(tmp_path)


def test_the_vector_of_an_erased_text_is_gone_too(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    [vector] = embedder.embed_documents(["canarytext of an invoice"])
    needle = bytes(memoryview(vector))  # type: ignore[arg-type]  # an array of floats
    with embedded(tmp_path / "memory.db", embedder=embedder) as memory:
        entry_id = memory.remember(an_entry("canarytext of an invoice"))
        memory.recall(a_query("canarytext of an invoice"), CONTEXT)
        memory.select("s", "plan", a_query("canarytext of an invoice"), CONTEXT)
        assert needle in bytes_under(tmp_path)

        memory.erase(entry_id, reason="user_request")

        assert needle not in bytes_under(tmp_path)


def test_an_erasure_is_pending_while_another_process_reads(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    script = (
        "import sys\nfrom remembrancer.composition import embedded\n"
        "with embedded(sys.argv[1]) as memory:\n"
        "    store = memory._container.store()\n"
        "    with store.transactions.snapshot():\n"
        "        store.vault.count(); print('reading', flush=True); sys.stdin.readline()\n"
        "    print('done', flush=True); sys.stdin.readline()\n"
    )
    with embedded(path, embedder=HashingEmbedder()) as memory:
        entry_id = memory.remember(an_entry("canarytext"))
        memory.finish_erasure()
        with subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as reader:
            assert reader.stdout is not None
            assert reader.stdin is not None
            assert reader.stdout.readline() == "reading\n"
            erasure = memory.erase(entry_id, reason="user_request")
            held = bytes_under(tmp_path)
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert reader.stdout.readline() == "done\n"
            finished = memory.finish_erasure()
            left = bytes_under(tmp_path)
            reader.stdin.write("\n")
            reader.stdin.close()

    assert erasure.pending
    assert b"canarytext" in held
    assert finished
    assert b"canarytext" not in left


# -- 14: any text finds ------------------------------------------------------

TEXTS = {
    "pre-edit": "the pre-edit hook",
    "GB/s": "it moves 4 GB/s over the wire",
    "v1.2.3": "released as v1.2.3 today",
    '"': 'he said "so"',
    "OR": "this OR that",
    "a\0b": "before a\0b after",
    "速度": "新しい速度の測定",
    "日本": "日本語の文章",
    "\N{ROCKET}": "a \N{ROCKET} launch",
    "cafe\u0301": "the café is NFC",
    "naïve": "nai\u0308ve is NFD",
    "x" * 100_000: "x" * 100_000,
}


def test_any_text_finds_what_contains_it(memory: Remembrancer) -> None:
    ids = dict(zip(TEXTS, memory.remember_many([*map(an_entry, TEXTS.values())]), strict=True))
    memory.remember_many([an_entry(f"something about {number}") for number in range(50)])

    found = {
        term: {one.entry_id for one in memory.recall(a_query(term, limit=20), CONTEXT).entries}
        for term in ids
    }

    assert {term for term, entry_id in ids.items() if entry_id not in found[term]} == set()


@pytest.mark.parametrize(
    "question", ["", " ", "\0", "NEAR(", "*", "a AND", "-", "\u200d", "(" * 9_999, "'; DROP"]
)
def test_no_question_raises(memory: Remembrancer, question: str) -> None:
    memory.remember(an_entry("some words"))

    memory.recall(a_query(question), CONTEXT)


@pytest.mark.parametrize("make", [an_entry, a_query])
def test_a_lone_surrogate_is_refused_at_the_edge(make: Any) -> None:
    with pytest.raises(InvalidInputError, match="lone surrogate"):
        make("half \ud83d of a pair")


# -- 15: the model away ------------------------------------------------------


class Away(HashingEmbedder):
    """Has answered once and has no vector any more."""

    @override
    def embed_query(self, text: str) -> None:
        return None


@pytest.mark.parametrize(
    ("embedder", "reason"),
    [
        (Away(), "no_usable_vector"),
        (HashingEmbedder(model="other"), "no_embedder_for_index"),
    ],
    ids=["no vector", "another model"],
)
def test_without_a_vector_recall_goes_by_words_and_says_why(
    tmp_path: Path, embedder: HashingEmbedder, reason: str
) -> None:
    with embedded(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
        entry_id = memory.remember(an_entry("the invoice"))

    with embedded(tmp_path / "memory.db", embedder=embedder) as memory:
        found = memory.recall(a_query("invoice"), CONTEXT)
        selection = memory.select("s", "plan", a_query("invoice"), CONTEXT)

    assert [one.entry_id for one in found.entries] == [entry_id]
    assert (found.mode, found.mode_reason) == ("sparse", reason)
    assert (selection.mode, selection.mode_reason) == ("sparse", reason)
    assert selection.sealed_query_vector is None
    assert selection.embedding_tuple is None


# -- 24: two identical writes at once ----------------------------------------

_WRITE = """
import json, sys
from remembrancer.composition import embedded
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import NewEntry, Sensitivity
with embedded(sys.argv[1], embedder=HashingEmbedder()) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    ids = [memory.remember(NewEntry(
        tenant="acme", owner="ana", scope="project", text="the same words", kind="note",
        sensitivity=Sensitivity.INTERNAL, idempotency_key=sys.argv[2] or None)) for _ in range(5)]
    print(json.dumps([str(one) for one in ids]))
"""


@pytest.mark.parametrize(("key", "made"), [("retry-1", 1), ("", 15)])
def test_identical_writes_of_processes_at_once(tmp_path: Path, key: str, made: int) -> None:
    path = tmp_path / "memory.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITE, str(path), key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    ids = {one for writer in writers for one in json.loads(writer.communicate(timeout=60)[0])}

    with embedded(path) as memory:
        stands = memory.status()

    assert len(ids) == made
    assert (stands.entries, stands.events) == (made, made)
