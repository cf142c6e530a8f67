"""Where an API key comes from: the environment or a file, nothing else (design section 8).

A source names the place, never the value; it is read for each request, so that a rotated key
works without a restart, and no object keeps one.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from remembrancer.domain.errors import SettingsError

SECRET_CHARACTERS_MAX = 8_192

_SENDABLE = re.compile(r"[\x21-\x7e]+")


class SecretSource(Protocol):
    """Gives a secret when asked."""

    def read(self) -> str | None:
        """Return the secret; None where the provider needs none.

        Raises:
            SettingsError: there is none, or it can't be sent in a header.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoSecret(SecretSource):
    """For providers on this machine that ask for no key."""

    @override
    def read(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFromEnvironment(SecretSource):
    """A variable of the environment that composition hands in."""

    name: str
    environment: Mapping[str, str] = field(repr=False)

    @override
    def read(self) -> str:
        return _sendable(self.environment.get(self.name, ""), place=f"variable {self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFromFile(SecretSource):
    """A file that holds the secret and nothing else; blanks around it don't count."""

    path: Path

    @override
    def read(self) -> str:
        text: str | None = None
        try:
            # Not blocking: a pipe that nobody writes to would hold the request up for ever.
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:  # noqa: PTH123  # a descriptor has no path
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    text = file.read(SECRET_CHARACTERS_MAX + 1).decode("ascii")
        except (OSError, UnicodeDecodeError):
            pass  # Raised below, since a decoding error quotes what it read.
        if text is None:
            raise SettingsError(setting=f"file {self.path}", problem="can't be read as a secret")
        return _sendable(text, place=f"file {self.path}")


def _sendable(secret: str, *, place: str) -> str:
    secret = secret.strip()
    if not secret:
        raise SettingsError(setting=place, problem="holds no secret")
    if len(secret) > SECRET_CHARACTERS_MAX or not _SENDABLE.fullmatch(secret):
        raise SettingsError(setting=place, problem="holds what can't be sent as a secret")
    return secret
