"""The machine's source of unpredictable bytes."""

import os
from uuid import UUID, uuid4

from typing_extensions import override

from remembrancer.application.ports.randomness import Randomness


class SystemRandomness(Randomness):
    """What the operating system gives; good for keys and salts."""

    @override
    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    @override
    def uuid(self) -> UUID:
        return uuid4()
