"""Opening a memory: the two ways in."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from remembrancer.application.ports import AccessPolicy, Clock, Embedder, Randomness
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from remembrancer.composition.container import Container


def embedded(
    path: str | Path,
    *,
    policy: AccessPolicy | None = None,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
) -> Remembrancer:
    """Open the memory in one SQLite file, made if missing; everything works at once, offline.

    ``policy`` may widen what a principal sees within a tenant; ``embedder`` replaces the static
    model; ``clock`` and ``randomness`` are for tests and replays of whole runs.

    Raises:
        SettingsError: no file can lie at ``path``.
        StoreError: the file can't be opened; the error says why and what to do.
    """
    if not isinstance(path, str | Path):
        raise SettingsError(setting="store.path", problem="must be a string or a Path")
    settings = Settings(store=StoreSettings(path=Path(path)))
    return assembled(
        settings, policy=policy, embedder=embedder, clock=clock, randomness=randomness
    )


def production(
    settings: Settings,
    *,
    reread: Callable[[], Settings] | None = None,
    policy: AccessPolicy | None = None,
) -> Remembrancer:
    """Open the memory that ``settings`` describe.

    No lookup and no preparer are provided until a configuration is admitted; recall goes by
    keywords, and by vectors only where the embedder is in this process (design section 8).
    ``reread`` gives the settings as they are now, if they can change: another ceiling or price
    withdraws the admission within a second.

    Raises:
        StoreError: the store can't be opened; the error says why and what to do.
    """
    return assembled(settings, reread=reread, policy=policy)


def assembled(
    settings: Settings,
    *,
    reread: Callable[[], Settings] | None = None,
    policy: AccessPolicy | None = None,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
) -> Remembrancer:
    """Wire every part and open the store; used by the two ways in and by the command line."""
    container = wired(settings, reread)
    if policy is not None:
        container.policy.override(policy)
    if embedder is not None:
        container.embedders.override(_only(embedder))
    if clock is not None:
        container.clock.override(clock)
    if randomness is not None:
        container.randomness.override(randomness)
    try:
        container.init_resources()
    except BaseException:
        container.shutdown_resources()
        raise
    return Remembrancer(container, close=lambda: _shut(container))


def wired(settings: Settings, reread: Callable[[], Settings] | None = None) -> "Container":
    """Return the container with nothing opened yet."""
    # Here, not above: a host that imports us pays for the graph when it opens a memory.
    from dependency_injector import providers  # noqa: PLC0415

    from remembrancer.composition.container import Container  # noqa: PLC0415

    # As a provider of itself: dependency-injector would call a bare function for its result.
    return Container(settings=settings, reread=providers.Object(reread or (lambda: settings)))


def _shut(container: "Container") -> None:
    container.shutdown_resources()


def _only(embedder: Embedder) -> object:
    from remembrancer.application.embedders import Embedders  # noqa: PLC0415  # as above

    return Embedders([embedder])
