"""What every entry vault promises.

Enrol an adapter by subclassing :class:`EntryVaultContract`::

    class TestMyEntryVault(EntryVaultContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[tuple[EntryVault, Transactions]]:
            with MyStore.open(folder) as store:
                yield MyEntryVault(store), MyTransactions(store)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.rollback import rolled_back
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.sensitivity import Sensitivity

FIRST, SECOND, THIRD = (EntryId(UUID(int=number)) for number in (1, 2, 3))
UNKNOWN = EntryId(UUID(int=99))
MORNING = datetime(2030, 1, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
SALT = bytes(range(32))


def an_original(entry_id: EntryId = FIRST, version: int = 1, **changes: Any) -> Original:
    """Return a version with plain labels, recorded at :data:`MORNING` plus ``version`` hours."""
    text = changes.pop("text", f"version {version} of {entry_id.int}")
    salt = changes.pop("salt", SALT)
    plain = Original(
        tenant="acme",
        owner="ana",
        entry_id=entry_id,
        version=version,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
        text=text,
        salt=salt,
        digest=original_digest(salt, text),
        tokens=len(text) // 4,
        token_counter="test@1",  # noqa: S106  # Not a password.
        subjects=(),
        metadata={},
        recorded_at=MORNING + version * HOUR,
    )
    return replace(plain, **changes)


texts = st.text(st.characters(exclude_categories=["Cs"]))
originals = st.builds(
    an_original,
    text=texts,
    salt=st.binary(min_size=32, max_size=32),
    sensitivity=st.sampled_from(Sensitivity),
    tokens=st.integers(0, 2**40),
    subjects=st.lists(texts, max_size=3).map(tuple),
    metadata=st.dictionaries(texts, texts, max_size=3),
    reason=texts,
    recorded_at=st.datetimes(timezones=st.just(UTC)),
)


class EntryVaultContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[tuple[EntryVault, Transactions]]:
        """Open a vault kept in ``folder``, empty at first, and its store's transactions."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[tuple[EntryVault, Transactions]]:
        with self.opened(tmp_path) as store:
            yield store

    @pytest.fixture
    def vault(self, store: tuple[EntryVault, Transactions]) -> EntryVault:
        return store[0]

    @pytest.fixture
    def transactions(self, store: tuple[EntryVault, Transactions]) -> Transactions:
        return store[1]

    # -- Keeping -----------------------------------------------------------

    def test_an_empty_vault_knows_nothing(self, vault: EntryVault) -> None:
        assert vault.current([FIRST]) == {}
        assert vault.versions([(FIRST, 1)]) == {}
        assert vault.indexed([FIRST]) == {}
        assert vault.history(FIRST) == []
        assert vault.of_kind(tenant="acme", owners=None, kind="note", scopes=("project",)) == []
        assert vault.scopes(tenant="acme", owners=None) == []
        assert vault.entries_of(tenant="acme", owner="ana") == []
        assert vault.tenant_of_erased(FIRST) is None
        assert vault.count() == 0

    def test_keeping_nothing_is_not_an_error(self, vault: EntryVault) -> None:
        vault.keep([])

        assert vault.count() == 0

    def test_asking_for_nothing_gives_nothing(self, vault: EntryVault) -> None:
        vault.keep([an_original()])

        assert vault.current([]) == vault.indexed([]) == vault.versions([]) == {}
        assert vault.scopes(tenant="acme", owners=()) == []

    def test_gives_back_every_field(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (vault, _):

            @given(original=originals)
            def gives_back(original: Original) -> None:
                vault.keep([original])

                assert vault.current([FIRST]) == {FIRST: original}
                vault.erase(FIRST)

            gives_back()

    def test_what_is_kept_does_not_change_with_the_callers_mapping(
        self, vault: EntryVault
    ) -> None:
        metadata = {"path": "a.md"}
        vault.keep([an_original(metadata=metadata)])

        metadata["path"] = "b.md"

        assert vault.current([FIRST])[FIRST].metadata == {"path": "a.md"}

    def test_a_next_version_supersedes_the_one_before(self, vault: EntryVault) -> None:
        first, second = an_original(version=1), an_original(version=2)
        vault.keep([first])

        vault.keep([second])

        assert vault.current([FIRST]) == {FIRST: second}
        assert vault.history(FIRST) == [
            replace(first, superseded_at=second.recorded_at),
            second,
        ]

    def test_versions_of_one_batch_follow_each_other(self, vault: EntryVault) -> None:
        batch = [an_original(version=version) for version in (1, 2, 3)]

        vault.keep([*batch, an_original(SECOND)])

        assert [original.version for original in vault.history(FIRST)] == [1, 2, 3]
        assert vault.current([FIRST, SECOND])[FIRST] == batch[2]
        assert vault.count() == 2

    def test_a_correction_may_move_an_entry_to_another_scope(self, vault: EntryVault) -> None:
        vault.keep([an_original(scope="old")])

        vault.keep([an_original(version=2, scope="new", kind="core")])

        assert vault.scopes(tenant="acme", owners=None) == ["new", "old"]
        assert vault.of_kind(tenant="acme", owners=None, kind="note", scopes=("old",)) == []
        assert len(vault.of_kind(tenant="acme", owners=None, kind="core", scopes=("new",))) == 1

    @pytest.mark.parametrize("version", [1, 3, 7])
    def test_a_version_that_does_not_follow_is_refused(
        self, vault: EntryVault, version: int
    ) -> None:
        vault.keep([an_original(version=1)])

        with pytest.raises(StaleStreamError):
            vault.keep([an_original(version=version)])

        assert [original.version for original in vault.history(FIRST)] == [1]

    def test_a_refused_batch_leaves_nothing(self, vault: EntryVault) -> None:
        vault.keep([an_original(FIRST)])

        with pytest.raises(StaleStreamError):
            vault.keep([an_original(SECOND, scope="new"), an_original(FIRST)])

        assert vault.count() == 1
        assert vault.scopes(tenant="acme", owners=None) == ["project/alpha"]

    def test_keeps_thousands_at_once(self, vault: EntryVault) -> None:
        ids = [EntryId(UUID(int=number)) for number in range(1, 3_001)]

        vault.keep([an_original(entry_id) for entry_id in ids])

        assert vault.count() == 3_000
        assert set(vault.current(ids)) == set(ids)

    # -- Looking up --------------------------------------------------------

    def test_what_is_not_there_is_left_out(self, vault: EntryVault) -> None:
        vault.keep([an_original(FIRST), an_original(SECOND)])

        assert set(vault.current([FIRST, UNKNOWN, SECOND, FIRST])) == {FIRST, SECOND}
        assert set(vault.versions([(FIRST, 1), (FIRST, 2), (UNKNOWN, 1), (SECOND, 0)])) == {
            (FIRST, 1)
        }
        assert set(vault.indexed([FIRST, UNKNOWN])) == {FIRST}

    def test_versions_are_found_current_or_not(self, vault: EntryVault) -> None:
        vault.keep([an_original(version=version) for version in (1, 2, 3)])

        found = vault.versions([(FIRST, 3), (FIRST, 1)])

        assert {key: original.version for key, original in found.items()} == {
            (FIRST, 1): 1,
            (FIRST, 3): 3,
        }

    def test_an_index_id_resolves_to_what_stands_under_it(self, vault: EntryVault) -> None:
        vault.keep([an_original(version=1), an_original(version=2)])

        found = vault.indexed([FIRST, version_id(FIRST, 1), version_id(FIRST, 2)])

        assert {key: original.version for key, original in found.items()} == {
            FIRST: 2,
            version_id(FIRST, 1): 1,
        }

    def test_a_version_id_is_not_an_entry(self, vault: EntryVault) -> None:
        vault.keep([an_original(version=1), an_original(version=2)])
        old = version_id(FIRST, 1)

        assert vault.current([old]) == {}
        assert vault.versions([(old, 1)]) == {}
        assert vault.history(old) == []
        assert vault.erase(old) == []

    def test_of_kind_gives_current_entries_of_these_scopes_oldest_first(
        self, vault: EntryVault
    ) -> None:
        vault.keep(
            [
                an_original(THIRD, kind="core", recorded_at=MORNING),
                an_original(SECOND, kind="core", recorded_at=MORNING),
                an_original(FIRST, kind="core", recorded_at=MORNING + HOUR),
                an_original(EntryId(UUID(int=4)), kind="note"),
                an_original(EntryId(UUID(int=5)), kind="core", scope="project/alpha/b"),
                an_original(EntryId(UUID(int=6)), kind="core", tenant="acme-corp"),
            ]
        )

        found = vault.of_kind(
            tenant="acme", owners=("ana",), kind="core", scopes=("project/alpha", "project")
        )

        assert [original.entry_id for original in found] == [SECOND, THIRD, FIRST]

    def test_owners_are_told_apart(self, vault: EntryVault) -> None:
        vault.keep(
            [
                an_original(FIRST, owner="ana", scope="a"),
                an_original(SECOND, owner="ben", scope="b"),
                an_original(THIRD, owner="ana", tenant="acme-corp", scope="c"),
            ]
        )

        assert vault.scopes(tenant="acme", owners=("ana",)) == ["a"]
        assert vault.scopes(tenant="acme", owners=("ben", "nobody")) == ["b"]
        assert vault.scopes(tenant="acme", owners=None) == ["a", "b"]
        assert vault.entries_of(tenant="acme", owner="ben") == [SECOND]
        assert vault.of_kind(tenant="acme", owners=("ben",), kind="note", scopes=("a",)) == []
        assert vault.of_kind(tenant="acme", owners=(), kind="note", scopes=("a",)) == []

    def test_scopes_and_ids_come_sorted(self, vault: EntryVault) -> None:
        scopes = ["b", "B", "a/é", "a/z", "\N{ROCKET}", "\uffee", "a"]
        ids = [EntryId(UUID(int=number << 120 | 1)) for number in (200, 3, 127, 128, 0, 7, 9)]

        vault.keep(
            [
                an_original(entry_id, scope=scope)
                for entry_id, scope in zip(ids, scopes, strict=True)
            ]
        )

        assert vault.scopes(tenant="acme", owners=None) == sorted(scopes)
        assert vault.entries_of(tenant="acme", owner="ana") == sorted(ids)

    # -- Erasing -----------------------------------------------------------

    def test_erasing_removes_all_versions(self, vault: EntryVault) -> None:
        vault.keep([an_original(version=1), an_original(version=2), an_original(SECOND)])

        assert vault.erase(FIRST) == [1, 2]

        assert vault.history(FIRST) == []
        assert vault.indexed([FIRST, version_id(FIRST, 1)]) == {}
        assert vault.entries_of(tenant="acme", owner="ana") == [SECOND]
        assert vault.count() == 1

    def test_erasing_what_is_not_there_is_not_an_error(self, vault: EntryVault) -> None:
        assert vault.erase(UNKNOWN) == []

    def test_an_erased_entry_is_known_as_erased(self, vault: EntryVault) -> None:
        vault.keep([an_original(FIRST, tenant="acme-corp"), an_original(SECOND)])
        vault.keep([an_original(FIRST, 2, tenant="acme-corp", scope="b")])
        kept = vault.tenant_of_erased(FIRST)

        vault.erase(FIRST)
        vault.erase(FIRST)

        assert kept is None
        assert vault.tenant_of_erased(FIRST) == "acme-corp"
        assert vault.tenant_of_erased(SECOND) is None
        assert vault.tenant_of_erased(version_id(FIRST, 1)) is None

    def test_a_scope_goes_with_its_last_version(self, vault: EntryVault) -> None:
        vault.keep([an_original(FIRST, scope="a"), an_original(SECOND, scope="a")])
        vault.keep([an_original(SECOND, 2, scope="b")])

        vault.erase(FIRST)
        before = vault.scopes(tenant="acme", owners=None)
        vault.erase(SECOND)

        assert before == ["a", "b"]
        assert vault.scopes(tenant="acme", owners=None) == []

    def test_an_erasure_leaves_no_byte_once_scrubbed(self, tmp_path: Path) -> None:
        salt = bytes(range(100, 132))
        with self.opened(tmp_path) as (vault, transactions):
            for version, length in enumerate((3, 400, 20_000), start=1):
                vault.keep(
                    [
                        an_original(
                            version=version,
                            text="canarytext " * length,
                            salt=salt,
                            subjects=("canarysubject",),
                            metadata={"canarykey": "canaryvalue"},
                            reason="canaryreason",
                        )
                    ]
                )
            vault.keep([an_original(SECOND)])

            vault.erase(FIRST)

            assert transactions.scrub()
            left = bytes_under(tmp_path)
            assert b"canary" not in left
            assert salt not in left

    # -- Transactions ------------------------------------------------------

    def test_a_transaction_that_fails_undoes_what_the_vault_did(
        self, vault: EntryVault, transactions: Transactions
    ) -> None:
        vault.keep([an_original(FIRST), an_original(SECOND)])
        before = [vault.history(FIRST), vault.history(SECOND)]

        with rolled_back(transactions):
            vault.keep([an_original(FIRST, 2, scope="new"), an_original(THIRD)])
            vault.keep([an_original(FIRST, 3)])
            vault.erase(SECOND)
            vault.erase(FIRST)

        assert [vault.history(FIRST), vault.history(SECOND)] == before
        assert vault.indexed([version_id(FIRST, 1), version_id(FIRST, 2)]) == {}
        assert vault.scopes(tenant="acme", owners=None) == ["project/alpha"]
        assert vault.tenant_of_erased(SECOND) is None
        assert vault.count() == 2

    def test_reads_in_a_transaction_see_its_writes(
        self, vault: EntryVault, transactions: Transactions
    ) -> None:
        with transactions.begin():
            vault.keep([an_original(FIRST)])

            assert vault.count() == 1
            assert vault.scopes(tenant="acme", owners=None) == ["project/alpha"]

    # -- Any sequence ------------------------------------------------------

    def test_behaves_like_a_simple_model(self) -> None:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]  # Hypothesis has no hints here.
            lambda: EntryVaultMachine(self),
            settings=settings(max_examples=20, stateful_step_count=25),
        )


class EntryVaultMachine(RuleBasedStateMachine):
    """Keep, correct, erase and fail; after each step the vault equals a list of versions."""

    ids: ClassVar = st.sampled_from([FIRST, SECOND, THIRD])
    labels: ClassVar = st.sampled_from(["a", "a/b", "c"])

    def __init__(self, contract: EntryVaultContract) -> None:
        super().__init__()
        self.resources = ExitStack()
        folder = Path(self.resources.enter_context(TemporaryDirectory()))
        self.vault, self.transactions = self.resources.enter_context(contract.opened(folder))
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
        superseded = [replace(before[-1], superseded_at=self.now)] if before else []
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
