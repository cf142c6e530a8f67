"""What may be wrong with an export, and with the store that it should be restored into.

They stand in the tree of :mod:`remembrancer.domain.errors`.  None of them says what a line holds.
"""

from remembrancer.domain.errors import RecordError, RefusedError


class UnreadableExportError(RefusedError):
    """The file is no export of ours, or its format is newer; nothing was written."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; nothing was written")
        self.problem = problem


class DamagedExportError(RecordError):
    """The file began as an export, and isn't (any more) what was written; nothing was restored."""

    def __init__(self, *, line: int, problem: str) -> None:
        super().__init__(
            f"line {line} of the export: {problem}; nothing was restored: export again, or take "
            "another copy"
        )
        self.line = line
        """From 1."""
        self.problem = problem


class StoreNotEmptyError(RefusedError):
    """Only an empty store can be restored into; nothing was written."""

    def __init__(self) -> None:
        super().__init__(
            "there is something in this memory already; an export is restored into an empty one"
        )
