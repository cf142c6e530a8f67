"""Composition: settings, the container, the facade and the command line.

Hosts start here::

    from remembrancer.composition import embedded

    with embedded("memory.db") as memory:
        ...
"""

from remembrancer.composition.assembly import embedded, production
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings

__all__ = ["Remembrancer", "Settings", "embedded", "production"]
