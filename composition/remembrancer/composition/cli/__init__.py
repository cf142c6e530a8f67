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

    Not where a host of ours calls it, with ``arguments``, from another thread or with a handler
    of its own: its process goes on afterwards, and must not end at an interrupt.
    """
    own = arguments is None
    if own:
        _on_interrupt(_end)
    from remembrancer.composition.cli.app import main as command_line  # noqa: PLC0415  # see above

    try:
        if own:
            _on_interrupt(signal.default_int_handler)
        status = command_line(arguments)
        if own:
            _on_interrupt(_end)
    except KeyboardInterrupt:  # Between two lines that see to one.
        status = INTERRUPTED
    sys.exit(status)


def _on_interrupt(do: Callable[[int, FrameType | None], object]) -> None:
    # A parent may have wished to ignore it, a host to handle it by itself.
    if signal.getsignal(signal.SIGINT) not in {signal.default_int_handler, _end}:
        return
    try:  # noqa: SIM105 - contextlib isn't loaded yet
        signal.signal(signal.SIGINT, do)
    except ValueError:
        pass  # In another thread than the main one, which no interrupt reaches.


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


__all__ = ["INTERRUPTED", "main"]
