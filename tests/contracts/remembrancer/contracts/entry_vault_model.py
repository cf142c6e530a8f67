"""A simple model of a vault, and any sequence of calls to compare an adapter with it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.originals import FIRST, HOUR, MORNING, SECOND, THIRD, an_original
from remembrancer.contracts.rollback import rolled_back
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id

OpenVault = Callable[[Path], AbstractContextManager[tuple[EntryVault, Transactions]]]


class EntryVaultMachine(RuleBasedStateMachine):
    """Keep, correct, erase and fail; after each step the vault equals a list of versions."""

    ids: ClassVar = st.sampled_from([FIRST, SECOND, THIRD])
    labels: ClassVar = st.sampled_from(["a", "a/b", "c"])

    def __init__(self, opened: OpenVault) -> None:
        super().__init__()
        self.resources = ExitStack()
        folder = Path(self.resources.enter_context(TemporaryDirectory()))
        self.vault, self.transactions = self.resources.enter_context(opened(folder))
        self.kept: dict[EntryId, list[Original]] = {}
        self.erased: set[EntryId] = set()
        self.now = MORNING

    def teardown(self) -> None:
        self.resources.close()

    @rule(entry_id=ids, scope=labels, kind=labels, owner=labels, fails=st.booleans())
    def keep(
        self,
        entry_id: EntryId,
        scope: str,
        kind: str,
        owner: str,
        fails: bool,  # noqa: FBT001  # Hypothesis passes by name.
    ) -> None:
        before = self.kept.get(entry_id, [])
        self.now += HOUR
        original = an_original(
            entry_id,
            len(before) + 1,
            scope=scope,
            kind=kind,
            owner=before[0].owner if before else owner,
            recorded_at=self.now,
        )
        if fails:
            with rolled_back(self.transactions):
                self.vault.keep([original])
            return
        self.vault.keep([original])
        superseded = [before[-1]._replace(superseded_at=self.now)] if before else []
        self.kept[entry_id] = [*before[:-1], *superseded, original]

    @rule(entry_id=ids, fails=st.booleans())
    def erase(self, entry_id: EntryId, fails: bool) -> None:  # noqa: FBT001  # As above.
        versions = [original.version for original in self.kept.get(entry_id, [])]
        if fails:
            with rolled_back(self.transactions):
                self.vault.erase(entry_id)
            return

        assert self.vault.erase(entry_id) == versions
        if self.kept.pop(entry_id, None):
            self.erased.add(entry_id)

    @rule(entry_id=ids, too_far=st.integers(2, 4))
    def skip_a_version(self, entry_id: EntryId, too_far: int) -> None:
        version = len(self.kept.get(entry_id, [])) + too_far

        with pytest.raises(StaleStreamError):
            self.vault.keep([an_original(entry_id, version)])

    @invariant()
    def every_look_up_agrees(self) -> None:
        every = [original for versions in self.kept.values() for original in versions]
        wanted = [
            (entry_id, version) for entry_id in (FIRST, SECOND, THIRD) for version in range(5)
        ]
        index_ids = [*(version_id(*key) for key in wanted), FIRST, SECOND, THIRD]

        assert self.vault.current(index_ids) == {
            entry_id: versions[-1] for entry_id, versions in self.kept.items()
        }
        assert self.vault.versions(wanted) == {
            (original.entry_id, original.version): original
            for original in every
            if original.version < 5
        }
        assert self.vault.indexed(index_ids) == {
            self._index_id(original): original
            for original in every
            if original.superseded_at is None or original.version < 5
        }
        assert [self.vault.history(entry_id) for entry_id in self.kept] == [*self.kept.values()]

    @invariant()
    def every_listing_agrees(self) -> None:
        every = [original for versions in self.kept.values() for original in versions]

        assert self.vault.count() == len(self.kept)
        for entry_id in (FIRST, SECOND, THIRD):
            is_erased = entry_id in self.erased and entry_id not in self.kept
            assert self.vault.tenant_of_erased(entry_id) == ("acme" if is_erased else None)
        assert self.vault.scopes(tenant="acme", owners=None) == sorted(
            {original.scope for original in every}
        )
        for name in ("a", "a/b", "c"):
            current = [o for o in every if o.owner == name and o.superseded_at is None]
            of_kind = [o for o in current if o.kind == "a" and o.scope != "c"]
            ids = sorted(original.entry_id for original in current)
            assert self.vault.entries_of(tenant="acme", owner=name) == ids
            assert self.vault.of_kind(
                tenant="acme", owners=(name,), kind="a", scopes=("a", "a/b")
            ) == sorted(of_kind, key=lambda o: (o.recorded_at, o.entry_id))

    @staticmethod
    def _index_id(original: Original) -> EntryId:
        if original.superseded_at is None:
            return original.entry_id
        return version_id(original.entry_id, original.version)
