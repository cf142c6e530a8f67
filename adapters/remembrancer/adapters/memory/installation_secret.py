"""The installation's secret in process: gone with it, as is everything that it keys."""

import threading

from typing_extensions import override

from remembrancer.application.ports.installation_secret import SECRET_BYTES, InstallationSecret
from remembrancer.application.ports.randomness import Randomness


class MemoryInstallationSecret(InstallationSecret):
    """Drawn when it is first asked for."""

    def __init__(self, *, randomness: Randomness) -> None:
        self._randomness = randomness
        self._lock = threading.Lock()
        self._secret: bytes | None = None

    @override
    def secret(self) -> bytes:
        with self._lock:
            if self._secret is None:
                self._secret = self._randomness.bytes(SECRET_BYTES)
            return self._secret
