"""Looking for what an erasure must not have left behind."""

import subprocess
import sys
from pathlib import Path

_READ = (
    "import sys; from pathlib import Path\n"
    "for path in sorted(Path(sys.argv[1]).rglob('*')):\n"
    "    if path.is_file(): sys.stdout.buffer.write(path.read_bytes())\n"
)


def bytes_under(folder: Path) -> bytes:
    """Return the bytes of all files under ``folder``, one behind the other.

    Another process reads them: closing a file here would drop the locks that a store of this
    process holds on it.
    """
    return subprocess.run(  # Our own interpreter, our own words.
        [sys.executable, "-I", "-c", _READ, str(folder)], capture_output=True, check=True
    ).stdout
