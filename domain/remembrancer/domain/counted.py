"""Numbers in sentences."""


def counted(number: int, one: str, more: str = "") -> str:
    """Return so many of something: ``1 entry``, ``2 entries``; ``more`` is ``one`` with an s."""
    return f"{number} {one if number == 1 else more or f'{one}s'}"
