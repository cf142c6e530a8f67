"""A local folder of Qdrant's client: who may write it, and what it leaves behind.

Local mode unpickles what lies in its folder, so whoever can write there can run code here: a
folder that others can write is refused.  Its files are made to overwrite what is deleted, and to
reach the disk once for a batch instead of once for a point.
"""

import os
import stat
from pathlib import Path
from typing import Any

from remembrancer.domain.errors import SettingsError, StoreForbiddenError, StoreUnavailableError

SETTING = "vector_store.path"
_LOCK = ".lock"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_PRAGMAS = ("secure_delete = ON", "journal_mode = WAL", "synchronous = NORMAL")


def made_safe(path: Path) -> Path:
    """Make the folder if it isn't there, for this user alone; return it resolved.

    Raises:
        SettingsError: others can write it, something in it, or a folder above it; or it isn't a
            folder.
        StoreForbiddenError: it can't be made or read.
    """
    resolved = Path(os.path.realpath(path))
    try:
        resolved.mkdir(mode=0o700, exist_ok=True)
        _require_ours(resolved)
    except (FileExistsError, NotADirectoryError):
        raise SettingsError(setting=SETTING, problem="isn't a folder") from None
    except FileNotFoundError as error:
        raise SettingsError(
            setting=SETTING, problem="lies in a folder that does not exist"
        ) from error
    except PermissionError as error:
        raise StoreForbiddenError(store=str(resolved), problem="can't be used") from error
    return resolved


def _require_ours(folder: Path) -> None:
    if not hasattr(os, "geteuid"):  # No such permissions on this system.
        return
    ours = {os.geteuid(), 0}
    for above in folder.parents:
        found = above.stat()
        # In a folder such as /tmp only its owner replaces what is his.
        if found.st_uid not in ours or (
            found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX
        ):
            raise _refused(above)
    own = folder.stat()
    # Where nobody else gets in, what lies inside is out of reach whatever its own permissions.
    reachable = folder.rglob("*") if own.st_mode & (stat.S_IRWXG | stat.S_IRWXO) else ()
    for inside in (folder, *reachable):
        found = inside.lstat()
        if found.st_uid not in ours or stat.S_ISLNK(found.st_mode) or found.st_mode & _OTHERS:
            raise _refused(inside)


def _refused(path: Path) -> SettingsError:
    return SettingsError(
        setting=SETTING,
        problem=f"others can write {path}, and Qdrant's local mode runs what it finds there; "
        "make it yours alone (chmod go-w), or use a server",
    )


def require_free(path: Path) -> None:
    """See that no other process has the folder open.

    The client would say so too, but leave its lock's file open each time.

    Raises:
        StoreUnavailableError: one has.
    """
    import portalocker  # noqa: PLC0415  # comes with the client

    lock = path / _LOCK
    if not lock.exists():
        return
    with lock.open("r+") as file:
        try:
            portalocker.lock(
                file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
            )
        except portalocker.exceptions.LockException:
            raise StoreUnavailableError(
                store=f"qdrant at {path}",
                problem="another process has it open; several need a server",
            ) from None
        portalocker.unlock(file)


def kept_clean(client: Any, collection: str) -> None:
    """Set a collection's file up so that what is deleted is overwritten."""
    file = _file(client, collection)
    if file is not None:
        for pragma in _PRAGMAS:
            file.execute(f"PRAGMA {pragma}")


def settle(client: Any, collection: str) -> None:
    """Bring what was written to the disk, durably, and empty the file's own log."""
    file = _file(client, collection)
    if file is not None:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _file(client: Any, collection: str) -> Any:
    """Return the connection that local mode keeps a collection by; None if it has another way."""
    local = getattr(client, "_client", None)
    kept = getattr(local, "collections", {}).get(collection)
    return getattr(getattr(kept, "storage", None), "storage", None)
