from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from remembrancer.domain import EntryHeader, Sensitivity
from remembrancer.domain.entry import (
    REASON_STATED,
    MemoryEntry,
    reason_code,
    subject_key,
)
from remembrancer.domain.errors import EntryErasedError
from remembrancer.domain.identity import EntryId

START = datetime(2030, 1, 1, tzinfo=UTC)
HEADER = EntryHeader(
    tenant="acme",
    owner="ana",
    entry_id=EntryId(UUID(int=1)),
    version=1,
    scope="project/alpha",
    kind="note",
    sensitivity=Sensitivity.INTERNAL,
)
CANARY = "Canary 5f3a, said Ana"

digests = st.integers(0, 3).map(lambda number: f"{number:064x}")
labels = st.tuples(
    st.sampled_from(["project", "project/alpha"]),
    st.sampled_from(["note", "core"]),
    st.sampled_from(Sensitivity),
)
reasons = st.sampled_from(["typo", "gdpr.request", CANARY, ""])


def _remembered() -> MemoryEntry:
    return MemoryEntry.remember(HEADER, digest="d" * 64, length=5, at=START)


class EntryMachine(RuleBasedStateMachine):
    """Correct and erase in any order, beside a model that is a plain list of versions.

    Two standing invariants: nothing leaks into the log, and replay equals live.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.facts: list[Any] = []

    @initialize(label=labels, digest=digests)
    def remember(self, label: tuple[str, str, Sensitivity], digest: str) -> None:
        self.versions = [(*label, digest)]
        self.erased = False
        self.entry = MemoryEntry.remember(
            self._header(label), digest=digest, length=5, at=self._tick()
        )

    @rule(label=labels, digest=digests, reason=reasons)
    def correct(self, label: tuple[str, str, Sensitivity], digest: str, reason: str) -> None:
        if self.erased:
            with pytest.raises(EntryErasedError):
                self._correct(label, digest, reason)
        else:
            self._correct(label, digest, reason)
            self.versions.append((*label, digest))

    @rule(reason=reasons)
    def erase(self, reason: str) -> None:
        self.entry.erase(reason=reason, at=self._tick())
        self.erased = True

    @invariant()
    def labels_are_those_of_the_last_version(self) -> None:
        scope, kind, sensitivity, _ = self.versions[-1]
        assert self.entry.header == EntryHeader(
            tenant="acme",
            owner="ana",
            entry_id=HEADER.entry_id,
            version=len(self.versions),
            scope=scope,
            kind=kind,
            sensitivity=sensitivity,
        )
        assert self.entry.digests == [digest for *_, digest in self.versions]
        assert self.entry.erased is self.erased

    @invariant()
    def one_fact_is_recorded_for_each_thing_that_happened(self) -> None:
        self.facts += self.entry.collect_events()
        assert len(self.facts) == len(self.versions) + self.erased
        assert [fact.originator_version for fact in self.facts] == list(
            range(1, len(self.facts) + 1)
        )

    @invariant()
    def words_stay_out_of_the_log(self) -> None:
        for fact in self.facts:
            assert CANARY not in repr(vars(fact))

    @invariant()
    def replay_agrees(self) -> None:
        replayed: MemoryEntry | None = None
        for fact in self.facts:
            replayed = fact.mutate(replayed)
        assert replayed == self.entry

    def _correct(self, label: tuple[str, str, Sensitivity], digest: str, reason: str) -> None:
        self.entry.correct(
            self._header(label), digest=digest, length=5, reason=reason, at=self._tick()
        )

    def _header(self, label: tuple[str, str, Sensitivity]) -> EntryHeader:
        scope, kind, sensitivity = label
        return HEADER._replace(scope=scope, kind=kind, sensitivity=sensitivity)

    def _tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


TestEntryMachine = EntryMachine.TestCase
TestEntryMachine.settings = settings(max_examples=60, stateful_step_count=12)


def test_erased_entry_takes_nothing_more() -> None:
    entry = _remembered()
    entry.erase(reason="gdpr", at=START)
    recorded = len(entry.pending_events)

    entry.erase(reason="again", at=START)
    with pytest.raises(EntryErasedError) as refusal:
        entry.correct(HEADER, digest="e" * 64, length=1, reason="typo", at=START)

    assert refusal.value.entry_id == HEADER.entry_id
    assert len(entry.pending_events) == recorded


def test_what_begins_an_entry_is_what_its_aggregate_records() -> None:
    begun = MemoryEntry.begun(HEADER, digest="d" * 64, length=5, at=START)

    [recorded] = _remembered().collect_events()

    assert recorded == begun


def test_stream_is_that_of_tenant_and_entry() -> None:
    assert _remembered().id == MemoryEntry.create_id("acme", HEADER.entry_id)


def test_time_is_an_argument() -> None:
    entry = _remembered()
    entry.erase(reason="gdpr", at=START + timedelta(days=1))

    assert [fact.timestamp for fact in entry.collect_events()] == [
        START,
        START + timedelta(days=1),
    ]


@pytest.mark.parametrize("code", ["typo", "gdpr.request_7", "a", "x" * 64])
def test_reason_that_is_a_code_is_recorded(code: str) -> None:
    assert reason_code(code) == code


@pytest.mark.parametrize(
    "words", ["", CANARY, "Typo", "typo ", "typo\n", "7", "-a", "x" * 65, "naïve", "a b"]
)
def test_reason_in_words_is_only_said_to_have_been_stated(words: str) -> None:
    assert reason_code(words) == REASON_STATED


def test_events_hold_labels_and_measures_only() -> None:
    entry = _remembered()
    entry.correct(HEADER, digest="e" * 64, length=9, reason=CANARY, at=START)
    entry.erase(reason="gdpr", at=START)
    remembered, corrected, erased = (vars(fact) for fact in entry.collect_events())

    common = {"originator_id", "originator_version", "timestamp"}
    assert remembered.keys() - common == {
        "originator_topic", "tenant", "owner", "entry_id", "digest", "length", "scope", "kind",
        "sensitivity",
    }  # fmt: skip
    assert corrected["reason"] == REASON_STATED
    assert (corrected["length"], corrected["digest"]) == (9, "e" * 64)
    assert erased["reason"] == "gdpr"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ana", "ANA"), ("Straße", "STRASSE"), ("\uff21na", "ana"), ("é", "e\u0301")],
)
def test_subjects_are_compared_without_case_and_width(one: str, other: str) -> None:
    assert subject_key(one) == subject_key(other)
