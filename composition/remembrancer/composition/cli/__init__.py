"""The command line: ``remembrancer``.

Exit status: 0 ok; 1 a finding (something isn't as it should be, or the store can't be used now);
2 wrong use.
"""

from remembrancer.composition.cli.app import main

__all__ = ["main"]
