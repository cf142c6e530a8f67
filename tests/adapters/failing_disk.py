"""A disk that runs full, or breaks, at a chosen write."""

from collections.abc import Generator
from contextlib import contextmanager

import apsw
from typing_extensions import override

REAL = "unix"


class FailingFileSystem(apsw.VFS):
    """Passes everything on to the real file system until it is told to fail."""

    NAME = "failing"

    def __init__(self) -> None:
        self._error: type[apsw.Error] | None = None
        self._left = 0
        self._syncs_only = False
        self.failed = False
        """Whether it has failed since it was last told to."""
        super().__init__(self.NAME, base=REAL, makedefault=True)

    def fail_after(
        self, writes: int, error: type[apsw.Error], *, syncs_only: bool = False
    ) -> None:
        """Let so many writes (or syncs) pass, and then none until :meth:`recover`."""
        self._error, self._left, self._syncs_only = error, writes, syncs_only
        self.failed = False

    def recover(self) -> None:
        """Work again."""
        self._error = None

    def count(self, *, sync: bool = False) -> None:
        """Fail, if it is time to."""
        if self._error is None or (self._syncs_only and not sync):
            return
        if self._left <= 0:
            self.failed = True
            raise self._error
        self._left -= 1

    @override
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "FailingFile":
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    def __init__(
        self,
        file_system: FailingFileSystem,
        name: str | apsw.URIFilename | None,
        flags: list[int],
    ) -> None:
        super().__init__(REAL, name, flags)
        self._file_system = file_system

    @override
    def xWrite(self, data: bytes, offset: int) -> None:
        self._file_system.count()
        super().xWrite(data, offset)

    @override
    def xSync(self, flags: int) -> None:
        self._file_system.count(sync=True)
        super().xSync(flags)


@contextmanager
def failing_disk() -> Generator[FailingFileSystem]:
    """Let every connection that is opened inside go over a disk that can fail."""
    file_system = FailingFileSystem()
    try:
        yield file_system
    finally:
        file_system.unregister()
