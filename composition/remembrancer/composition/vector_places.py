"""Where vectors are kept: the store's own registry, joined with Qdrant where one is set up."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from remembrancer.application.ports import Clock, VectorIndexes
from remembrancer.composition.settings import VectorStoreSettings
from remembrancer.composition.store import Store
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from remembrancer.adapters.provider.secret_source import SecretSource
    from remembrancer.adapters.qdrant.options import QdrantOptions

QDRANT = "qdrant"


@contextmanager
def placed_indexes(
    settings: VectorStoreSettings, store: Store, *, clock: Clock
) -> Generator[VectorIndexes]:
    """Give the indexes; nothing is asked of Qdrant before a vector is written or looked for.

    An address may stand in the settings while the backend is local: vectors that are still in
    Qdrant are then found there, until a reindex has brought them back.

    Raises:
        SettingsError: Qdrant is set up, and its client isn't installed.
    """
    if settings.url is None and settings.path is None:
        yield store.indexes
        return
    if find_spec("qdrant_client") is None:
        raise SettingsError(
            setting="vector_store.backend",
            problem="qdrant needs the package qdrant-client; install remembrancer[qdrant]",
        )
    # Here, since most memories keep their vectors themselves.
    from remembrancer.adapters.qdrant.link import QdrantLink  # noqa: PLC0415
    from remembrancer.adapters.qdrant.vector_place import QdrantVectorPlace  # noqa: PLC0415
    from remembrancer.application.placed_indexes import PlacedIndexes  # noqa: PLC0415
    from remembrancer.application.ports.vector_indexes import LOCAL  # noqa: PLC0415

    link = QdrantLink(options=_options(settings), clock=clock)
    place = QdrantVectorPlace(link=link, secret=store.secret.secret)
    try:
        yield PlacedIndexes(
            registry=store.indexes,
            places={QDRANT: place},
            preferred=QDRANT if settings.backend == QDRANT else LOCAL,
        )
    finally:
        link.close()


def require_answer(settings: VectorStoreSettings, *, clock: Clock) -> None:
    """Ask a server of Qdrant's for the little that any can answer.

    Raises:
        StoreError: it doesn't, in time or at all, or refuses the key.
        SettingsError: what it is to be reached with can't be read.
    """
    from remembrancer.adapters.qdrant.link import QdrantLink  # noqa: PLC0415  # as above

    link = QdrantLink(options=_options(settings), clock=clock)
    try:
        with link.asking(settings.timeout_s) as asking:
            asking.client.get_collections()
    finally:
        link.close()


def key_problem(settings: VectorStoreSettings) -> str | None:
    """Return what is wrong with the key that a server of Qdrant's is to be asked with, if any."""
    try:
        _key_source(settings).read()
    except SettingsError as error:
        return str(error)
    return None


def _options(settings: VectorStoreSettings) -> "QdrantOptions":
    from remembrancer.adapters.qdrant.options import QdrantOptions  # noqa: PLC0415  # as above

    given = settings.model_dump(exclude={"backend", "api_key_variable", "api_key_file"})
    return QdrantOptions(**given, api_key=_key_source(settings).read)


def _key_source(settings: VectorStoreSettings) -> "SecretSource":
    from remembrancer.adapters.provider.secret_source import (  # noqa: PLC0415  # as above
        NoSecret,
        SecretFromEnvironment,
        SecretFromFile,
    )

    if settings.api_key_file is not None:
        return SecretFromFile(path=settings.api_key_file)
    if settings.api_key_variable is not None:
        return SecretFromEnvironment(name=settings.api_key_variable, environment=os.environ)
    return NoSecret()
