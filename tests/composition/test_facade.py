"""The public face, as hosts use it: over one SQLite file, with the static model."""

import asyncio
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from remembrancer.composition import Remembrancer, embedded
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import (
    ContextItem,
    NewEntry,
    RecallContext,
    RecallKind,
    RecallQuery,
    Sensitivity,
)
from remembrancer.domain.errors import (
    InvalidInputError,
    SettingsError,
    StoreClosedError,
    StoreCorruptError,
    UnknownEntryError,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Remembrancer]:
    with embedded(tmp_path / "memory.db") as memory:
        yield memory


def an_entry(text: str = "Backups are kept in two places.") -> NewEntry:
    return NewEntry(
        tenant="acme",
        owner="ana",
        scope="project/alpha",
        text=text,
        sensitivity=Sensitivity.INTERNAL,
    )


QUERY = RecallQuery(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    scopes=("project/alpha",),
    read_ceiling=Sensitivity.INTERNAL,
    question="where are backups",
)
CONTEXT = RecallContext(
    policy_version="p1",
    retrieval_policy_version="r1",
    surface="cli",
    task_digest="t",
    sensitivity_floor=Sensitivity.INTERNAL,
)


def test_the_promised_face_is_as_promised(tmp_path: Path) -> None:
    """Item 9 of the issue, to the letter."""
    with embedded(str(tmp_path / "memory.db")) as memory:
        entry_id = memory.remember(
            NewEntry(
                tenant="acme",
                owner="ana",
                scope="project/alpha",
                text="Decisions are stored in the log.",
                kind="decision",
                sensitivity=Sensitivity.INTERNAL,
                subjects=("storage",),
                metadata={"path": "adr/0001.md"},
            )
        )
        more = memory.remember_many([an_entry("one"), an_entry("two"), an_entry("three")])
        memory.correct(entry_id, text="Decisions are stored in the event log.", reason="clearer")
        memory.erase(more[1], reason="user_request")
        query = RecallQuery(
            tenant="acme",
            owner="ana",
            principal="agent-7",
            scopes=("project/alpha",),
            read_ceiling=Sensitivity.INTERNAL,
            question="where are decisions kept?",
            subjects=(),
            kind=RecallKind.DELIBERATE,
            limit=10,
        )
        context = RecallContext(
            policy_version="p1",
            retrieval_policy_version="r1",
            surface="cli",
            task_digest="d1",
            sensitivity_floor=Sensitivity.INTERNAL,
        )
        found = memory.recall(query, context)
        selection = memory.select("session-1", "plan", query, context)
        pack = memory.build_pack(
            "session-1",
            "plan",
            query,
            context,
            items=[ContextItem(layer=0, id="rules", text="Be brief.", required=True)],
            token_budget=2000,
        )
        again = memory.replay(
            "session-1",
            "plan",
            tenant="acme",
            principal="agent-7",
            scopes=("project/alpha",),
            read_ceiling=Sensitivity.INTERNAL,
        )
        assert again.digest == pack.digest
        assert not again.differences

    best = found.entries[0]
    assert (best.entry_id, best.version) == (entry_id, 2)
    assert best.text == "Decisions are stored in the event log."
    assert best.score > 0
    assert (best.ranks.dense_rank, best.ranks.sparse_rank) == (1, 1)
    assert found.mode == "hybrid"
    assert [one.entry_id for one in selection.entries] == [one.entry_id for one in found.entries]
    assert pack.selection == selection
    assert pack.text == again.text
    assert 0 < pack.tokens <= pack.token_budget == 2000
    assert pack.included[:2] == ("rules", str(entry_id))
    assert pack.omitted == ()
    assert len(pack.digest) == 64


def test_a_memory_lasts(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with embedded(path) as memory:
        entry_id = memory.remember(an_entry())

    with embedded(path) as memory:
        found = memory.recall(QUERY, CONTEXT)

    assert [one.entry_id for one in found.entries] == [entry_id]
    assert found.mode == "hybrid"


def test_meaning_finds_what_no_word_of_the_question_says(memory: Remembrancer) -> None:
    first, _ = memory.remember_many(
        [an_entry("The invoice was paid with money."), an_entry("The dog sleeps in the garden.")]
    )

    found = memory.recall(QUERY.model_copy(update={"question": "cash payments"}), CONTEXT)

    assert found.entries[0].entry_id == first
    assert found.entries[0].ranks.sparse_rank is None


@pytest.mark.parametrize("text", ["日本語", "ξ", "\N{ROCKET}"])
def test_a_text_of_few_known_tokens_is_found_by_its_words(memory: Remembrancer, text: str) -> None:
    entry_id = memory.remember(an_entry(text))

    found = memory.recall(QUERY.model_copy(update={"question": text}), CONTEXT)

    assert [one.entry_id for one in found.entries] == [entry_id]


def test_what_is_closed_is_closed(tmp_path: Path) -> None:
    memory = embedded(tmp_path / "memory.db")
    memory.close()
    memory.close()

    for call in (
        lambda: memory.recall(QUERY, CONTEXT),
        lambda: memory.remember(an_entry()),
        memory.status,
        memory.finish_erasure,
    ):
        with pytest.raises(StoreClosedError):
            call()


def test_after_closing_only_the_file_is_left(tmp_path: Path) -> None:
    with embedded(tmp_path / "memory.db") as memory:
        memory.remember(an_entry())

    assert [one.name for one in tmp_path.iterdir()] == ["memory.db"]


def test_a_clock_and_an_embedder_can_be_given(tmp_path: Path) -> None:
    at = datetime(2031, 5, 6, tzinfo=UTC)
    embedder = HashingEmbedder()
    with embedded(tmp_path / "m.db", clock=FixedClock(at), embedder=embedder) as memory:
        memory.remember(an_entry())

        found = memory.recall(QUERY, CONTEXT)

    assert found.entries[0].recorded_at == at
    assert found.embedding_tuple == embedder.embedding_tuple


@pytest.mark.parametrize("entry_id", ["3f0e9f0a-0000-4000-8000", "first", 7, None])
def test_an_id_must_be_a_uuid(memory: Remembrancer, entry_id: object) -> None:
    with pytest.raises(InvalidInputError, match="entry id"):
        memory.correct(entry_id, text="x", reason="edited")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidInputError, match="entry id"):
        memory.erase(entry_id, reason="edited")  # type: ignore[arg-type]  # on purpose


# -- Files that are none of ours ---------------------------------------------


def test_a_folder_is_no_memory(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="folder"):
        embedded(tmp_path)


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        embedded(tmp_path / "no" / "memory.db")

    assert not (tmp_path / "no").exists()


def test_a_text_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("Dear diary, " * 500)

    with pytest.raises(StoreCorruptError, match="not a SQLite database"):
        embedded(path)

    assert path.read_text() == "Dear diary, " * 500


# -- Async twins -------------------------------------------------------------


def test_every_method_that_waits_has_an_async_twin() -> None:
    twins = {name for name, one in vars(Remembrancer).items() if inspect.iscoroutinefunction(one)}

    assert {"aremember", "aremember_many", "acorrect", "aerase", "arecall", "aselect"} <= twins
    assert {"abuild_pack", "areplay", "aerase_session", "areindex", "astatus", "aclose"} <= twins
    for twin in twins & {f"a{name}" for name in vars(Remembrancer)}:
        plain = getattr(Remembrancer, twin[1:], None)
        if plain is not None and not inspect.iscoroutinefunction(plain):
            expected = inspect.signature(plain).parameters
            assert inspect.signature(getattr(Remembrancer, twin)).parameters == expected


def test_twins_do_the_same_beside_an_event_loop(memory: Remembrancer) -> None:
    async def use() -> tuple[int, bool]:
        ids = await asyncio.gather(*(memory.aremember(an_entry()) for _ in range(8)))
        found = await memory.arecall(QUERY, CONTEXT)
        pack = await memory.abuild_pack("s", "plan", QUERY, CONTEXT, token_budget=500)
        again = await memory.areplay(
            "s",
            "plan",
            tenant="acme",
            principal="agent-7",
            scopes=["project"],
            read_ceiling=Sensitivity.INTERNAL,
        )
        with pytest.raises(UnknownEntryError):
            await memory.aerase(UUID(int=0), reason="edited")
        assert {one.entry_id for one in found.entries} == set(ids)
        return len(found.entries), pack.digest == again.digest

    assert asyncio.run(use()) == (8, True)


def test_a_memory_is_closed_at_the_end_of_an_async_block(tmp_path: Path) -> None:
    async def remembered() -> Remembrancer:
        async with embedded(tmp_path / "memory.db") as memory:
            assert (await memory.astatus()).entries == 0
        return memory

    memory = asyncio.run(remembered())

    with pytest.raises(StoreClosedError):
        memory.status()
