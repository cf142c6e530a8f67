"""Whose rows a statement of a write transaction is about.

The transaction has told the server (:mod:`.statements`).  Row security sees to it anyway, but
what it adds to a statement isn't always what an index is chosen by.
"""

_MINE = (
    "tenant = current_setting('remembrancer.tenant')"
    " AND owner = current_setting('remembrancer.owner')"
)


def owned(statement: str, **names: str) -> str:
    """Put the condition in the place of ``{mine}``, and names of ours in theirs."""
    return statement.format(mine=_MINE, **names)
