"""Kingfisher's scanner as a second opinion on credentials (extra ``guards``).

In this process and offline: its scanning opens no socket.  Its validating and revoking parts are
never touched.  Secrets are redacted inside the scanner; of a finding only the rule's id is read.
"""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_TIMEOUT_S = 2.0
"""Running into it raises, and a guard that raises withholds."""


class KingfisherEngine:
    """Compiles the bundled rules at the first text (seconds), then reuses them.

    Args:
        cache_folder: A private folder (mode 0700) for the compiled rules, which shortens later
            starts; None writes nothing.
    """

    def __init__(self, *, cache_folder: Path | None = None) -> None:
        self._cache_folder = cache_folder
        self._scanner: Scanner | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name and version; the rules are bundled, so the version decides them."""
        from importlib.metadata import version  # noqa: PLC0415 - 15 ms, only where it is used

        return f"kingfisher@{version('kingfisher-secret-scanner')}"

    def warm_up(self) -> None:
        """Compile the rules now (three seconds, 0.3 with a cache), not at the first text."""
        self._ready()

    def rules_in(self, text: str) -> tuple[str, ...]:
        """Return the ids of the rules that ``text`` shows, sorted.

        Raises:
            TimeoutError: the text took too long.
            ImportError: the extra ``guards`` isn't installed.
        """
        found = self._ready().scan(text.encode("utf-8", "replace"), timeout=_TIMEOUT_S)
        return tuple(sorted({finding.rule_id for finding in found if finding.visible}))

    def _ready(self) -> "Scanner":
        with self._lock:
            if self._scanner is None:
                # An extra, and 35 MB: loaded when the first text is checked.
                from kingfisher_sdk import Rules, Scanner  # noqa: PLC0415

                cached = self._cache_folder is not None
                rules = Rules(cache=cached, cache_dir=self._cache_folder)
                self._scanner = Scanner(rules, redact=True)
            return self._scanner
