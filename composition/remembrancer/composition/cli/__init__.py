"""The command line: ``remembrancer``.

Exit status: 0 ok; 1 a finding (something isn't as it should be, or the store can't be used now);
2 wrong use; 130 interrupted.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
"""What a shell calls a command that was interrupted, and what Typer makes of it."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with its exit status.

    While its modules load, and once the command is done, there is nothing to undo: an interrupt
    then ends the process at once.  As an exception it would come out of any module's import, with
    a traceback, or be taken there for a package that is broken.
    """
    _on_interrupt(_end)
    from remembrancer.composition.cli.app import main as command_line  # noqa: PLC0415  # see above

    try:
        _on_interrupt(signal.default_int_handler)
        status = command_line(arguments)
        _on_interrupt(_end)
    except KeyboardInterrupt:  # Between two lines that see to one.
        status = INTERRUPTED
    sys.exit(status)


def _on_interrupt(do: Callable[[int, FrameType | None], object]) -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # As a parent may have wished.
        signal.signal(signal.SIGINT, do)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


__all__ = ["INTERRUPTED", "main"]
