"""The object graph, outermost last.

No lookup and no preparer are provided: both belong to a configuration that was admitted with
evidence, and asking for them without one is refused (design 4.5, section 8).
"""

from collections.abc import Iterator
from typing import NoReturn

from dependency_injector import containers, providers

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.markdown.document_reader import FileDocumentReader
from remembrancer.adapters.policy.default import DefaultAccessPolicy
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sealing.aes_gcm import AesGcmSealer
from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.adapters.wordllama.token_counter import WordLlamaTokenCounter
from remembrancer.application.build_pack import BuildPack
from remembrancer.application.correct import Correct
from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.embedders import Embedders
from remembrancer.application.entry_index import EntryIndex
from remembrancer.application.erase import Erase
from remembrancer.application.import_documents import ImportDocuments
from remembrancer.application.quote import Quote
from remembrancer.application.recall import Recall
from remembrancer.application.reindex import Reindex
from remembrancer.application.remember import EntryWriter, Remember
from remembrancer.application.replay import Replay
from remembrancer.application.select_entries import SelectEntries
from remembrancer.application.status import ReadStatus
from remembrancer.composition.settings import (
    WIDTHS,
    EmbedderSettings,
    Settings,
    StoreSettings,
)
from remembrancer.composition.store import Store, open_store
from remembrancer.domain.errors import NotAdmittedError


def _store(settings: StoreSettings) -> Iterator[Store]:
    with open_store(settings) as store:
        yield store


def _embedders(settings: EmbedderSettings, model: StaticModel) -> Embedders:
    if settings.provider == "none":
        return Embedders([])
    # The preferred width first; the others answer where an index was built with them.
    others = (width for width in WIDTHS if width != settings.dimensions)
    return Embedders(
        WordLlamaEmbedder(model=model, dimensions=width)
        for width in (settings.dimensions, *others)
    )


def _refuse_until_admitted() -> NoReturn:
    raise NotAdmittedError(())


class Container(containers.DeclarativeContainer):
    """Every part, wired once per memory."""

    settings = providers.Dependency(instance_of=Settings)

    # Driven ports
    clock = providers.Singleton(SystemClock)
    randomness = providers.Singleton(SystemRandomness)
    sealer = providers.Singleton(AesGcmSealer, randomness=randomness)
    policy = providers.Singleton(DefaultAccessPolicy)
    static_model = providers.Singleton(StaticModel)
    embedders = providers.Singleton(_embedders, settings.provided.embedder, static_model)
    document_vectors = providers.Singleton(DocumentVectors, embedders=embedders)
    tokens = providers.Singleton(WordLlamaTokenCounter, model=static_model)
    store = providers.Resource(_store, settings.provided.store)

    # Absent until a configuration is admitted
    semantic_lookup = providers.Callable(_refuse_until_admitted)
    query_preparer = providers.Callable(_refuse_until_admitted)

    # Use cases
    entry_index = providers.Singleton(
        EntryIndex, sparse=store.provided.sparse, indexes=store.provided.indexes
    )
    writer = providers.Singleton(
        EntryWriter, vectors=document_vectors, indexes=store.provided.indexes, tokens=tokens
    )
    remember = providers.Singleton(
        Remember,
        log=store.provided.log,
        vault=store.provided.vault,
        index=entry_index,
        writer=writer,
        transactions=store.provided.transactions,
        clock=clock,
        randomness=randomness,
    )
    correct = providers.Singleton(
        Correct,
        log=store.provided.log,
        vault=store.provided.vault,
        index=entry_index,
        writer=writer,
        transactions=store.provided.transactions,
        clock=clock,
        randomness=randomness,
    )
    erase = providers.Singleton(
        Erase,
        log=store.provided.log,
        vault=store.provided.vault,
        sessions=store.provided.sessions,
        index=entry_index,
        transactions=store.provided.transactions,
        clock=clock,
    )
    recall = providers.Singleton(
        Recall,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=store.provided.indexes,
        policy=policy,
        transactions=store.provided.transactions,
        embedders=embedders,
    )
    select = providers.Singleton(
        SelectEntries,
        recall=recall,
        log=store.provided.log,
        sessions=store.provided.sessions,
        sealer=sealer,
        transactions=store.provided.transactions,
        clock=clock,
        randomness=randomness,
    )
    quote = providers.Singleton(Quote, vault=store.provided.vault, policy=policy)
    build_pack = providers.Singleton(
        BuildPack,
        select=select,
        quote=quote,
        tokens=tokens,
        log=store.provided.log,
        sessions=store.provided.sessions,
        transactions=store.provided.transactions,
        clock=clock,
        randomness=randomness,
    )
    replay = providers.Singleton(
        Replay,
        quote=quote,
        log=store.provided.log,
        sessions=store.provided.sessions,
        transactions=store.provided.transactions,
    )
    import_documents = providers.Singleton(
        ImportDocuments,
        reader=providers.Singleton(FileDocumentReader),
        vault=store.provided.vault,
        remember_many=remember,
        correct=correct,
    )
    reindex = providers.Singleton(
        Reindex,
        log=store.provided.log,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=store.provided.indexes,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
    status = providers.Singleton(
        ReadStatus,
        log=store.provided.log,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=store.provided.indexes,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
