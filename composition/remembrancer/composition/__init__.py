"""Composition: settings, the container, the facade and the command line.

Hosts start here::

    from remembrancer.composition import embedded

    with embedded("memory.db") as memory:
        ...

What they ask for is loaded as they ask, so that the command line, which lies in this package, can
see to interrupts before it loads anything.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remembrancer.composition.assembly import embedded, production
    from remembrancer.composition.facade import Remembrancer
    from remembrancer.composition.settings import Settings
else:
    from importlib import import_module

    _MODULES = {
        "Remembrancer": "facade",
        "Settings": "settings",
        "embedded": "assembly",
        "production": "assembly",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = ["Remembrancer", "Settings", "embedded", "production"]
