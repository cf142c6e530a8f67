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
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.entry_vault_model import EntryVaultMachine
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.originals import (
    FIRST,
    HOUR,
    MORNING,
    SECOND,
    THIRD,
    UNKNOWN,
    an_original,
    originals,
)
from remembrancer.contracts.rollback import rolled_back
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id


class EntryVaultContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    model_examples: ClassVar[int] = 20
    """Sequences of calls that are compared with a model; fewer where each call is a long way."""

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
            first._replace(superseded_at=second.recorded_at),
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

    def test_versions_come_one_for_one_where_their_order_is_asked_for(
        self, vault: EntryVault
    ) -> None:
        vault.keep([an_original(FIRST), an_original(SECOND), an_original(SECOND, version=2)])

        assert vault.in_order([]) == []
        for wanted in (
            [(SECOND, 2), (FIRST, 1)],
            [(FIRST, 1), (SECOND, 1), (UNKNOWN, 1), (SECOND, 2), (FIRST, 1), (FIRST, 0)],
            [(version_id(SECOND, 1), 1), (FIRST, 1)],
        ):
            found = vault.versions(wanted)
            assert vault.in_order(wanted) == [found.get(key) for key in wanted]

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
        opened = self.opened

        class Machine(EntryVaultMachine):
            def __init__(self) -> None:
                super().__init__(opened)

        run_state_machine_as_test(
            Machine, settings=settings(max_examples=self.model_examples, stateful_step_count=25)
        )
