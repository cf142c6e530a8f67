"""What every installation secret promises.

Enrol an adapter by subclassing :class:`InstallationSecretContract`::

    class TestMyInstallationSecret(InstallationSecretContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[InstallationSecret]:
            with MyStore.open(folder) as store:
                yield MyInstallationSecret(store)
"""

import threading
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from remembrancer.application.ports.installation_secret import SECRET_BYTES, InstallationSecret

THREADS = 8
INSTALLATIONS = 16


class InstallationSecretContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[InstallationSecret]:
        """Open the secret kept in ``folder``, not made at first."""

    def test_has_thirty_two_bytes(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as installation:
            assert len(installation.secret()) == SECRET_BYTES == 32

    def test_stays_the_same(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as installation:
            assert installation.secret() == installation.secret()

    def test_every_installation_has_its_own(self, tmp_path: Path) -> None:
        secrets = set()

        for number in range(INSTALLATIONS):
            folder = tmp_path / str(number)
            folder.mkdir()
            with self.opened(folder) as installation:
                secrets.add(installation.secret())

        assert len(secrets) == INSTALLATIONS

    def test_threads_that_ask_first_together_get_the_same(self, tmp_path: Path) -> None:
        barrier = threading.Barrier(THREADS)
        with self.opened(tmp_path) as installation:

            def ask() -> bytes:
                barrier.wait()
                return installation.secret()

            with ThreadPoolExecutor(THREADS) as pool:
                asked = [pool.submit(ask) for _ in range(THREADS)]
                secrets = {one.result() for one in asked}

        assert len(secrets) == 1

    def test_is_not_shown(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as installation:
            secret = installation.secret()

            shown = f"{installation!r} {installation}"

        assert repr(secret) not in shown
        assert secret.hex() not in shown
