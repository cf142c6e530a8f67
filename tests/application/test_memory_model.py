"""The memory against a model of a dozen lines: who may see which version when."""

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from tests.application.agreement import assert_agreement
from tests.application.house import a_context, a_query, an_entry, open_house, replay_of

from remembrancer.domain import ContextPack, EntryId, RecallKind, RecallQuery, Sensitivity
from remembrancer.domain.scope import covered_by_any

# The first is meant most often, so that questions meet entries.
tenants = st.sampled_from(["acme", "acme", "acme", "acme-corp"])
owners = st.sampled_from(["ana", "ana", "ana", "bob"])
scopes = st.sampled_from(["project", "project", "project/alpha", "project-x"])
levels = st.sampled_from([Sensitivity.INTERNAL, *Sensitivity])
texts = st.sampled_from(["common invoice one", "common storage two", "common ledger three"])
subjects = st.lists(st.sampled_from(["Ana", "bob", "Straße"]), max_size=2, unique=True)


@dataclass(frozen=True, slots=True)
class Version:
    """What the model keeps of a version."""

    text: str
    scope: str
    level: Sensitivity
    subjects: tuple[str, ...]
    since: datetime


@dataclass(slots=True)
class Life:
    """What the model keeps of an entry; none of it once erased."""

    tenant: str
    owner: str
    versions: list[Version] = field(default_factory=list)

    def at(self, time: datetime | None) -> int | None:
        """Return the number of the version that was current then, from 1."""
        numbers = [
            number
            for number, one in enumerate(self.versions, start=1)
            if time is None or one.since <= time
        ]
        return numbers[-1] if numbers else None


class MemoryMachine(RuleBasedStateMachine):
    """Random lives of entries, and random questions."""

    entries = Bundle("entries")
    on_disk = False

    @initialize(target=entries)
    def open(self) -> "MultipleResults[EntryId]":
        self._stack = ExitStack()
        path = None
        if self.on_disk:
            folder = Path(tempfile.mkdtemp())
            self._stack.callback(shutil.rmtree, folder)
            path = folder / "memory.db"
        self._house = self._stack.enter_context(open_house(path))
        self._lives: dict[EntryId, Life] = {}
        self._packs: list[tuple[str, str, ContextPack]] = []
        new = [
            self._version("common invoice one", scope, Sensitivity.INTERNAL, [])
            for scope in ("project", "project/alpha", "project")
        ]
        return multiple(*(self._remembered("acme", "ana", one) for one in new))

    @rule(
        target=entries,
        tenant=tenants,
        owner=owners,
        scope=scopes,
        level=levels,
        text=texts,
        about=subjects,
    )
    def remember(self, tenant: str, owner: str, **given: Any) -> EntryId:
        return self._remembered(tenant, owner, self._version(**given))

    @rule(entry_id=entries, scope=scopes, level=levels, text=texts, about=subjects)
    def correct(self, entry_id: EntryId, **given: Any) -> None:
        life = self._lives[entry_id]
        if not life.versions:
            return
        new, old = self._version(**given), life.versions[-1]
        version = self._house.memory.correct(
            entry_id,
            text=new.text,
            scope=new.scope,
            sensitivity=new.level,
            subjects=new.subjects,
            reason="edited",
        )
        if (new.text, new.scope, new.level, new.subjects) != (
            old.text,
            old.scope,
            old.level,
            old.subjects,
        ):
            life.versions.append(new)
        assert version == len(life.versions)

    @rule(entry_id=entries)
    def erase(self, entry_id: EntryId) -> None:
        erasure = self._house.memory.erase(entry_id, reason="user_request")

        assert erasure.erased == bool(self._lives[entry_id].versions)
        assert not erasure.pending
        self._lives[entry_id].versions.clear()

    @rule(hours=st.integers(1, 5))
    def wait(self, hours: int) -> None:
        self._house.clock.advance(timedelta(hours=hours))

    @rule()
    def reindex(self) -> None:
        self._house.memory.reindex(words=True, drop_retired=True)

    @rule(
        tenant=tenants,
        owner=owners,
        scope=st.lists(scopes, min_size=1, max_size=2),
        level=levels,
        hours_ago=st.none() | st.integers(0, 9),
        about=st.none() | st.lists(st.sampled_from(["ANA", "strasse"]), min_size=1, unique=True),
    )
    def recall(
        self,
        tenant: str,
        owner: str,
        scope: list[str],
        level: Sensitivity,
        hours_ago: int | None,
        about: list[str] | None,
    ) -> None:
        asked: dict[str, Any] = {"tenant": tenant, "owner": owner, "scopes": tuple(scope)}
        asked |= {"read_ceiling": level, "limit": 1_000}
        if hours_ago is not None:
            as_of = self._house.clock.now() - timedelta(hours=hours_ago)
            asked |= {"kind": RecallKind.HISTORICAL, "as_of": as_of}
        elif about is not None:
            asked |= {"kind": RecallKind.PEOPLE, "subjects": tuple(about)}
        query = a_query("common words", **asked)

        found = self._house.memory.recall(query, a_context())

        seen = [(one.entry_id, one.version, one.text) for one in found.entries]
        assert sorted(seen, key=repr) == sorted(self._visible(query), key=repr)
        places = [(-one.score, one.entry_id.int) for one in found.entries]
        assert places == sorted(places)

    @rule(tenant=tenants, owner=owners, level=levels)
    def pack(self, tenant: str, owner: str, level: Sensitivity) -> None:
        query = a_query("common", tenant=tenant, owner=owner, read_ceiling=level, limit=50)
        session = f"s{len(self._packs)}"

        pack = self._house.memory.build_pack(
            session, "plan", query, a_context(), token_budget=100_000
        )

        shown = {str(entry_id) for entry_id, _, _ in self._visible(query)}
        assert set(pack.included) == shown
        self._packs.append((tenant, session, pack))

    @rule(choice=st.integers(0, 1_000), scope=scopes, level=levels)
    def replay(self, choice: int, scope: str, level: Sensitivity) -> None:
        if not self._packs:
            return
        tenant, session, pack = self._packs[choice % len(self._packs)]

        again = self._house.memory.replay(
            session, "plan", **replay_of(tenant=tenant, scopes=(scope,), read_ceiling=level)
        )

        expected = {}
        for one in pack.selection.entries:
            life = self._lives[one.entry_id]
            if not life.versions:
                expected[str(one.entry_id)] = "erased"
            elif not all(
                covered_by_any((scope,), kept.scope) and kept.level <= level
                for kept in (life.versions[one.version - 1], life.versions[-1])
            ):
                expected[str(one.entry_id)] = "no longer permitted"
        assert {one.id: one.reason for one in again.differences} == expected
        assert (again.digest == pack.digest) == (not expected)

    @invariant()
    def parts_agree(self) -> None:
        told = assert_agreement(self._house.store, common_word="common")
        assert {one for one, life in self._lives.items() if not life.versions} == {
            one for one, entry in told.items() if entry.erased
        }

    def teardown(self) -> None:
        self._stack.close()

    def _remembered(self, tenant: str, owner: str, new: Version) -> EntryId:
        entry_id = self._house.memory.remember(
            an_entry(
                new.text,
                tenant=tenant,
                owner=owner,
                scope=new.scope,
                sensitivity=new.level,
                subjects=new.subjects,
            )
        )
        self._lives[entry_id] = Life(tenant, owner, [new])
        return entry_id

    def _version(self, text: str, scope: str, level: Sensitivity, about: list[str]) -> Version:
        return Version(text, scope, level, tuple(about), self._house.clock.now())

    def _visible(self, query: RecallQuery) -> list[tuple[EntryId, int, str]]:
        found = []
        wanted = {one.casefold() for one in query.subjects}
        for entry_id, life in self._lives.items():
            number = life.at(query.as_of)
            if number is None or (life.tenant, life.owner) != (query.tenant, query.owner):
                continue
            then, today = life.versions[number - 1], life.versions[-1]
            permitted = all(
                covered_by_any(query.scopes, one.scope) and one.level <= query.read_ceiling
                for one in (then, today)
            )
            about = {one.casefold() for one in then.subjects}
            if permitted and (not wanted or wanted & about):
                found.append((entry_id, number, then.text))
        return found


class DurableMemoryMachine(MemoryMachine):
    """The same in a SQLite file."""

    on_disk = True


TestMemoryModel = MemoryMachine.TestCase
TestMemoryModel.settings = settings(max_examples=40, stateful_step_count=30)
TestDurableMemoryModel = DurableMemoryMachine.TestCase
TestDurableMemoryModel.settings = settings(max_examples=6, stateful_step_count=30)
