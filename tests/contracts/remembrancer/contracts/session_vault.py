"""What every session vault promises.

Enrol an adapter by subclassing :class:`SessionVaultContract`::

    class TestMySessionVault(SessionVaultContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[tuple[SessionVault, Transactions]]:
            with MyStore.open(folder) as store:
                yield MySessionVault(store), MyTransactions(store)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import UUID

import pytest

from remembrancer.application.ports.session_vault import SessionVault
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.rollback import rolled_back

PLAN, REVIEW, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
KEY = bytes(range(32))
OTHER_KEY = bytes(range(100, 132))


class SessionVaultContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[tuple[SessionVault, Transactions]]:
        """Open a vault kept in ``folder``, empty at first, and its store's transactions."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[tuple[SessionVault, Transactions]]:
        with self.opened(tmp_path) as store:
            yield store

    @pytest.fixture
    def vault(self, store: tuple[SessionVault, Transactions]) -> SessionVault:
        return store[0]

    @pytest.fixture
    def transactions(self, store: tuple[SessionVault, Transactions]) -> Transactions:
        return store[1]

    def test_an_empty_vault_knows_nothing(self, vault: SessionVault) -> None:
        assert vault.key(PLAN) is None
        assert vault.items(PLAN, number=1) is None

    def test_gives_back_a_key(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)

        assert vault.key(PLAN) == KEY

    def test_a_later_key_replaces_the_earlier(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN, key=KEY)

        keep_key(vault, PLAN, key=OTHER_KEY)

        assert vault.key(PLAN) == OTHER_KEY

    @pytest.mark.parametrize("items", [b"[]", b'[{"text":"\\u0000"}]', b"x" * 100_000])
    def test_gives_back_items_by_number(self, vault: SessionVault, items: bytes) -> None:
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"[1]")

        vault.keep_items(PLAN, number=2, items=items)

        assert vault.items(PLAN, number=1) == b"[1]"
        assert vault.items(PLAN, number=2) == items
        assert vault.items(PLAN, number=3) is None

    def test_later_items_of_a_number_replace_the_earlier(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"[1]")

        vault.keep_items(PLAN, number=1, items=b"[2]")

        assert vault.items(PLAN, number=1) == b"[2]"

    def test_gives_items_with_their_key_while_it_has_both(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"[1]")
        keep_key(vault, OTHER, session="session-2", key=OTHER_KEY)
        vault.keep_items(OTHER, number=1, items=b"[2]")

        assert vault.keyed_items(PLAN, number=1) == (KEY, b"[1]")
        assert vault.keyed_items(OTHER, number=1) == (OTHER_KEY, b"[2]")
        assert vault.keyed_items(PLAN, number=2) is vault.keyed_items(REVIEW, number=1) is None

        vault.erase_session(tenant="acme", session="session-1")

        assert vault.keyed_items(PLAN, number=1) is None

    def test_a_new_key_leaves_the_items(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"[1]")

        keep_key(vault, PLAN, key=OTHER_KEY)

        assert vault.items(PLAN, number=1) == b"[1]"

    def test_items_without_a_key_are_not_kept(self, vault: SessionVault) -> None:
        vault.keep_items(PLAN, number=1, items=b"[1]")
        keep_key(vault, PLAN)

        assert vault.items(PLAN, number=1) is None

    def test_erasing_a_session_takes_all_its_stages(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        keep_key(vault, REVIEW)
        keep_key(vault, OTHER, session="session-2")
        vault.keep_items(PLAN, number=1, items=b"[1]")
        vault.keep_items(PLAN, number=2, items=b"[2]")

        assert vault.erase_session(tenant="acme", session="session-1") == 2

        assert (vault.key(PLAN), vault.key(REVIEW), vault.key(OTHER)) == (None, None, KEY)
        assert (vault.items(PLAN, number=1), vault.items(PLAN, number=2)) == (None, None)

    def test_a_session_of_another_tenant_is_another_session(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN, tenant="acme")
        keep_key(vault, OTHER, tenant="acme-corp")

        assert vault.erase_session(tenant="acme", session="session-1") == 1

        assert vault.key(OTHER) == KEY

    def test_erasing_an_owner_takes_all_its_sessions(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN, session="session-1")
        keep_key(vault, REVIEW, session="session-2")
        keep_key(vault, OTHER, owner="ben")
        vault.keep_items(REVIEW, number=1, items=b"[1]")

        assert vault.erase_owner(tenant="acme", owner="ana") == 2

        assert (vault.key(PLAN), vault.key(REVIEW), vault.key(OTHER)) == (None, None, KEY)
        assert vault.items(REVIEW, number=1) is None

    def test_erasing_again_finds_nothing(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        vault.erase_session(tenant="acme", session="session-1")

        assert vault.erase_session(tenant="acme", session="session-1") == 0
        assert vault.erase_owner(tenant="acme", owner="ana") == 0

    def test_an_erased_session_takes_no_items(self, vault: SessionVault) -> None:
        keep_key(vault, PLAN)
        vault.erase_session(tenant="acme", session="session-1")

        vault.keep_items(PLAN, number=1, items=b"[1]")

        assert vault.items(PLAN, number=1) is None

    def test_an_erasure_leaves_no_byte_once_scrubbed(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (vault, transactions):
            keep_key(vault, PLAN, key=KEY)
            keep_key(vault, PLAN, key=OTHER_KEY)
            vault.keep_items(PLAN, number=1, items=b'["canaryfirst"]')
            vault.keep_items(PLAN, number=1, items=b"canaryitem " * 9_000)
            keep_key(vault, OTHER, owner="ben", session="session-2", key=bytes(32))

            vault.erase_session(tenant="acme", session="session-1")

            assert transactions.scrub()
            left = bytes_under(tmp_path)
            assert b"canary" not in left
            assert KEY not in left
            assert OTHER_KEY not in left

    def test_a_transaction_that_fails_undoes_what_the_vault_did(
        self, vault: SessionVault, transactions: Transactions
    ) -> None:
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"[1]")

        with rolled_back(transactions):
            keep_key(vault, REVIEW)
            keep_key(vault, PLAN, key=OTHER_KEY)
            vault.keep_items(PLAN, number=1, items=b"[2]")
            vault.erase_owner(tenant="acme", owner="ana")

        assert (vault.key(PLAN), vault.key(REVIEW)) == (KEY, None)
        assert vault.items(PLAN, number=1) == b"[1]"


def keep_key(  # As the port's.
    vault: SessionVault,
    selection_id: UUID,
    *,
    tenant: str = "acme",
    owner: str = "ana",
    session: str = "session-1",
    key: bytes = KEY,
) -> None:
    """Keep a key under plain names."""
    vault.keep_key(selection_id, tenant=tenant, owner=owner, session=session, key=key)
