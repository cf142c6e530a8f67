"""A transaction that does its work and then fails, to see that nothing stays."""

from collections.abc import Generator
from contextlib import contextmanager

from remembrancer.application.ports.transactions import Transactions


class _FailedError(Exception):
    pass


@contextmanager
def rolled_back(transactions: Transactions) -> Generator[None]:
    """Run the block in a transaction that fails after it."""
    try:
        with transactions.begin():
            yield
            _fail()
    except _FailedError:
        return


def _fail() -> None:
    raise _FailedError
