"""Recall with a prepared vector: it finds what no word would, and only what stands now (BSQ)."""

import json
from array import array
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from dependency_injector import providers
from tests.application.house import House, a_context, a_query, an_entry, open_house
from tests.application.laboratory import DIMENSIONS, MODEL, Laboratory
from typing_extensions import override

from remembrancer.adapters.policy.default import DefaultAccessPolicy
from remembrancer.application.embedders import Embedders
from remembrancer.application.ports import Embedder
from remembrancer.application.recall import Recall
from remembrancer.contracts.loopback_provider import answer_for
from remembrancer.domain import EntryId, RecallKind, RecallMode, RecallQuery
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.vector import Vector

CONSTRAINT = "Deployments halt after dusk on Fridays."
QUESTION = "When may we not ship?"
OTHERS = ("The cat sleeps on the printer.", "Lunch is at noon.")
CORRECTED = "Deployments halt on public holidays."
MEANINGS = {"deployments": 0, "ship": 0, "cat": 1, "lunch": 2}


def meaning(text: str) -> "array[float]":
    """Return a direction for each meaning: synonyms share it, and no word is looked at twice."""
    vector = array("f", [0.01] * DIMENSIONS)
    for word, place in MEANINGS.items():
        if word in text.casefold():
            vector[place] = 1.0
    return vector


class Meaning(Embedder):
    """Embeds documents into the admitted configuration's space."""

    def __init__(self, space: EmbeddingTuple) -> None:
        self._space = space

    @property
    @override
    def embedding_tuple(self) -> EmbeddingTuple:
        return self._space

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [meaning(text) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector | None:
        raise AssertionError("questions are embedded by the provider alone")


@contextmanager
def with_prepared_queries(path: Path | None) -> Generator[tuple[House, Laboratory, EntryId]]:
    """Open a memory whose questions have vectors only when they were prepared."""
    lab = Laboratory()

    async def answer(texts: Sequence[str]) -> bytes:
        await anyio.sleep(0.1)
        body = answer_for(texts, model=MODEL, dimensions=DIMENSIONS)
        for item, text in zip(body["data"], texts, strict=True):
            item["embedding"] = list(meaning(text))
        return json.dumps(body).encode()

    lab.provider.behaviour = answer
    space = lab.admitted.configuration.embedding_tuple
    with open_house(path, embedders=(Meaning(space),)) as house:
        entry_id, *_ = [house.memory.remember(an_entry(text)) for text in (CONSTRAINT, *OTHERS)]
        store = house.store
        recall = Recall(
            vault=store.vault,
            sparse=store.sparse,
            indexes=store.indexes,
            policy=DefaultAccessPolicy(),
            transactions=store.transactions,
            embedders=Embedders([]),
            lookup=lab.prepared,
        )
        with house.container.recall.override(providers.Object(recall)):
            yield house, lab, entry_id


def question(kind: RecallKind) -> RecallQuery:
    return a_query(QUESTION, kind=kind, limit=1)


both_kinds = pytest.mark.parametrize(
    "kind", [RecallKind.AUTOMATIC, RecallKind.DELIBERATE], ids=lambda kind: kind.value
)


@both_kinds
def test_a_constraint_that_shares_no_word_is_found(path: Path | None, kind: RecallKind) -> None:
    with with_prepared_queries(path) as (house, lab, entry_id):
        lab.ask(question(kind))

        found = house.memory.recall(question(kind), a_context())

        assert [one.entry_id for one in found.entries] == [entry_id]
        assert (found.mode, found.mode_reason) == (RecallMode.HYBRID, "")
        assert found.embedding_tuple == lab.admitted.configuration.embedding_tuple
        assert found.entries[0].ranks.dense_rank == 1
        assert found.entries[0].ranks.sparse_rank is None


@both_kinds
def test_a_question_that_was_not_prepared_is_answered_by_words_as_before(
    path: Path | None, kind: RecallKind
) -> None:
    with with_prepared_queries(path) as (house, lab, _):
        before = len(lab.events)

        found = house.memory.recall(question(kind), a_context())

        assert found.entries == ()
        assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "query_not_prepared")
        assert len(lab.events) == before
        assert lab.provider.requests == []


def test_a_vector_prepared_for_the_other_kind_is_not_used(path: Path | None) -> None:
    with with_prepared_queries(path) as (house, lab, _):
        lab.ask(question(RecallKind.AUTOMATIC))

        found = house.memory.recall(question(RecallKind.DELIBERATE), a_context())

        assert found.mode is RecallMode.SPARSE


@both_kinds
def test_evidence_that_was_corrected_is_rejected_on_a_later_recall(
    path: Path | None, kind: RecallKind
) -> None:
    with with_prepared_queries(path) as (house, lab, entry_id):
        lab.ask(question(kind))
        before = house.memory.recall(question(kind), a_context())
        house.memory.correct(entry_id, text=CORRECTED, reason="it was wrong")

        after = house.memory.recall(question(kind), a_context())

        assert [one.text for one in before.entries] == [CONSTRAINT]
        assert [(one.text, one.version) for one in after.entries] == [(CORRECTED, 2)]
        assert after.mode is RecallMode.HYBRID
        assert len(lab.provider.requests) == 1


@both_kinds
def test_evidence_that_was_erased_is_rejected_on_a_later_recall(
    path: Path | None, kind: RecallKind
) -> None:
    with with_prepared_queries(path) as (house, lab, entry_id):
        lab.ask(question(kind))
        house.memory.erase(entry_id, reason="asked_for")

        after = house.memory.recall(question(kind), a_context())

        assert entry_id not in [one.entry_id for one in after.entries]
        assert CONSTRAINT not in [one.text for one in after.entries]


def test_evidence_that_moved_out_of_reach_is_rejected(path: Path | None) -> None:
    with with_prepared_queries(path) as (house, lab, entry_id):
        asked = question(RecallKind.DELIBERATE)
        lab.ask(asked)
        house.memory.correct(entry_id, scope="secret/plans", reason="moved")

        after = house.memory.recall(asked, a_context())

        assert entry_id not in [one.entry_id for one in after.entries]


def test_selections_and_packs_use_it_too_and_say_so(path: Path | None) -> None:
    with with_prepared_queries(path) as (house, lab, entry_id):
        asked = question(RecallKind.DELIBERATE)
        lab.ask(asked)

        selection = house.memory.select("s", "plan", asked, a_context())
        pack = house.memory.build_pack("s", "plan", asked, a_context(), token_budget=1_000)

        assert [one.entry_id for one in selection.entries] == [entry_id]
        assert (selection.mode, selection.mode_reason) == (RecallMode.HYBRID, "")
        assert selection.embedding_tuple == lab.admitted.configuration.embedding_tuple
        assert CONSTRAINT in pack.text


def test_after_a_withdrawal_recall_goes_by_words(path: Path | None) -> None:
    with with_prepared_queries(path) as (house, lab, _):
        asked = question(RecallKind.DELIBERATE)
        lab.ask(asked)
        lab.prepared.withdraw()

        found = house.memory.recall(asked, a_context())

        assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "query_not_prepared")
