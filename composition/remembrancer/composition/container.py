"""The object graph, outermost last.

No lookup and no preparer are provided: both belong to a configuration that was admitted with
evidence, and asking for them without one is refused (design 4.5, section 8).
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

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
from remembrancer.application.index_building import IndexBuilding
from remembrancer.application.index_check import IndexCheck
from remembrancer.application.index_points import IndexPoints
from remembrancer.application.ports import Clock, Randomness, VectorIndexes
from remembrancer.application.projection import Projection
from remembrancer.application.quote import Quote
from remembrancer.application.recall import Recall
from remembrancer.application.reindex import Reindex
from remembrancer.application.remember import EntryWriter, Remember
from remembrancer.application.replay import Replay
from remembrancer.application.select_entries import SelectEntries
from remembrancer.application.status import ReadStatus
from remembrancer.composition import recorded_parts
from remembrancer.composition.settings import (
    WIDTHS,
    EmbedderSettings,
    Settings,
    StoreSettings,
)
from remembrancer.composition.store import Store, open_store
from remembrancer.composition.vector_places import placed_indexes
from remembrancer.domain.errors import NotAdmittedError, StoreReadOnlyError

if TYPE_CHECKING:
    from remembrancer.application.document_vectors import RemoteDocuments
    from remembrancer.application.expire import Expire
    from remembrancer.application.gates import ReadGates
    from remembrancer.application.ports import SemanticQueryLookup
    from remembrancer.application.ports.ledger_repository import LedgerRepository
    from remembrancer.application.prepare_queries import PrepareQueries
    from remembrancer.application.reconcile import Reconcile
    from remembrancer.application.spend import ReadSpend
    from remembrancer.composition.carrier import Carrier
    from remembrancer.composition.preparation import Preparation

Reread = Callable[[], Settings]


def _store(settings: StoreSettings, clock: Clock, randomness: Randomness) -> Iterator[Store]:
    with open_store(settings, clock=clock, randomness=randomness) as store:
        yield store


def _indexes(settings: Settings, store: Store, clock: Clock) -> Iterator[VectorIndexes]:
    with placed_indexes(settings.vector_store, store, clock=clock) as indexes:
        yield indexes


def _carrier(
    settings: Settings, projection: Projection, clock: Clock, *_needed: object
) -> Iterator["Carrier | None"]:
    """Yield who carries entries to an index elsewhere; None where there can be none.

    What is closed after it is named in the graph: only resources that one takes itself wait.
    """
    places = settings.vector_store
    if settings.store.read_only or (places.url is None and places.path is None):
        yield None
        return
    # Here, since most memories need no such thread.
    from remembrancer.composition.carrier import Carrier  # noqa: PLC0415

    carrier = Carrier(projection, monotonic=clock.monotonic)
    carrier.start()
    try:
        yield carrier
    finally:
        carrier.stop()


def _preparation(
    settings: Settings, reread: Reread, store: Store, clock: Clock, randomness: Randomness
) -> Iterator["Preparation | None"]:
    """Yield what the admission brings; None where no provider is set or nothing is admitted."""
    if settings.provider is None:
        yield None
        return
    # Only here does an HTTP client come near: a provider is set.
    from remembrancer.composition.preparation import admitted_preparation  # noqa: PLC0415
    from remembrancer.composition.remote import RemoteSettings, folder_admission  # noqa: PLC0415

    admission = folder_admission(settings, reread, clock)
    try:
        preparation, watch = admitted_preparation(
            RemoteSettings.of(settings), admission, store, clock=clock, randomness=randomness
        )
    except (NotAdmittedError, StoreReadOnlyError):
        # In a store that can't be written nothing could be reserved.
        yield None
        return
    watch.start()
    try:
        yield preparation
    finally:
        watch.stop()


def _embedders(settings: EmbedderSettings, model: StaticModel) -> Embedders:
    if settings.provider == "none":
        return Embedders([])
    # The preferred width first; the others answer where an index was built with them.
    others = (width for width in WIDTHS if width != settings.dimensions)
    return Embedders(
        WordLlamaEmbedder(model=model, dimensions=width)
        for width in (settings.dimensions, *others)
    )


def _lookup(preparation: "Preparation | None") -> "SemanticQueryLookup | None":
    return None if preparation is None else preparation.lookup


def _documents(preparation: "Preparation | None") -> "RemoteDocuments | None":
    return None if preparation is None else preparation.documents


def _admitted_lookup(
    preparation: "Preparation | None", settings: Settings, reread: Reread, clock: Clock
) -> "SemanticQueryLookup":
    if preparation is None or preparation.lookup.is_withdrawn:
        raise refusal(settings, reread, clock)
    return preparation.lookup


def _admitted_preparer(
    preparation: "Preparation | None", settings: Settings, reread: Reread, clock: Clock
) -> "PrepareQueries":
    if preparation is None or preparation.lookup.is_withdrawn:
        raise refusal(settings, reread, clock)
    return preparation.preparer


def refusal(settings: Settings, reread: Reread, clock: Clock) -> NotAdmittedError:
    """Return why nothing is admitted, with the gates that are missing."""
    if settings.provider is not None:
        # As in _preparation.
        from remembrancer.composition.remote import folder_admission  # noqa: PLC0415

        try:
            folder_admission(settings, reread, clock).admitted()
        except NotAdmittedError as error:
            return error
    from remembrancer.domain.gate import Gate  # noqa: PLC0415  # as above

    # No provider is set, or what was admitted at the start was withdrawn since.
    return NotAdmittedError(tuple(gate.value for gate in Gate))


def _gates(settings: Settings, reread: Reread, clock: Clock) -> "ReadGates":
    # What judges is loaded where somebody asks.
    from remembrancer.adapters.admission.evidence_folder import EvidenceFolder  # noqa: PLC0415
    from remembrancer.application.gates import ReadGates  # noqa: PLC0415
    from remembrancer.composition.remote import current_configuration  # noqa: PLC0415

    return ReadGates(
        current=lambda: current_configuration(reread()),
        evidence=EvidenceFolder(settings.admission.evidence),
        clock=clock,
    )


def _spend(ledger: "LedgerRepository") -> "ReadSpend":
    from remembrancer.application.spend import ReadSpend  # noqa: PLC0415  # as above

    return ReadSpend(ledger=ledger)


def _expire(ledger: "LedgerRepository") -> "Expire":
    from remembrancer.application.expire import Expire  # noqa: PLC0415  # as above

    return Expire(ledger=ledger)


def _reconcile(ledger: "LedgerRepository") -> "Reconcile":
    from remembrancer.application.reconcile import Reconcile  # noqa: PLC0415  # as above

    return Reconcile(ledger=ledger)


class Container(containers.DeclarativeContainer):
    """Every part, wired once per memory."""

    settings = providers.Dependency(instance_of=Settings)
    reread: providers.Dependency[Reread] = providers.Dependency()
    """Gives the settings as they are now: a changed ceiling withdraws the admission."""

    # Driven ports
    clock = providers.Singleton(SystemClock)
    randomness = providers.Singleton(SystemRandomness)
    sealer = providers.Singleton(AesGcmSealer, randomness=randomness)
    policy = providers.Singleton(DefaultAccessPolicy)
    static_model = providers.Singleton(StaticModel)
    embedders = providers.Singleton(_embedders, settings.provided.embedder, static_model)
    tokens = providers.Singleton(WordLlamaTokenCounter, model=static_model)
    store = providers.Resource(_store, settings.provided.store, clock, randomness)
    indexes = providers.Resource(_indexes, settings, store, clock)

    # Absent until a configuration is admitted
    preparation = providers.Resource(_preparation, settings, reread, store, clock, randomness)
    semantic_lookup = providers.Callable(_admitted_lookup, preparation, settings, reread, clock)
    query_preparer = providers.Callable(_admitted_preparer, preparation, settings, reread, clock)

    # With or without an admission; the gates need no store
    gates = providers.Callable(_gates, settings, reread, clock)
    explain = providers.Singleton(recorded_parts.explain, store, policy)
    explain_reservation = providers.Singleton(recorded_parts.explain_reservation, store, clock)
    history = providers.Singleton(recorded_parts.history, store, policy)
    timeline = providers.Singleton(recorded_parts.timeline, store)
    export = providers.Singleton(recorded_parts.export, store)
    restore = providers.Singleton(recorded_parts.restore, store)
    spend = providers.Singleton(_spend, store.provided.ledger)
    expire = providers.Singleton(_expire, store.provided.ledger)
    reconcile = providers.Singleton(_reconcile, store.provided.ledger)

    # Use cases
    document_vectors = providers.Singleton(
        DocumentVectors, embedders=embedders, remote=providers.Callable(_documents, preparation)
    )
    entry_index = providers.Singleton(
        EntryIndex,
        sparse=store.provided.sparse,
        indexes=indexes,
        outbox=store.provided.outbox,
    )
    writer = providers.Singleton(
        EntryWriter, vectors=document_vectors, indexes=indexes, tokens=tokens
    )
    points = providers.Singleton(
        IndexPoints,
        vault=store.provided.vault,
        indexes=indexes,
        outbox=store.provided.outbox,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
    projection = providers.Singleton(
        Projection,
        log=store.provided.log,
        indexes=indexes,
        outbox=store.provided.outbox,
        points=points,
        transactions=store.provided.transactions,
        randomness=randomness,
    )
    carrier = providers.Resource(
        _carrier, settings, projection, clock, store, indexes, preparation
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
        elsewhere=projection,
    )
    recall = providers.Singleton(
        Recall,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=indexes,
        policy=policy,
        transactions=store.provided.transactions,
        embedders=embedders,
        lookup=providers.Callable(_lookup, preparation),
        log=store.provided.log,
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
        remember_many=remember.provided.new_of,
        correct=correct,
        transactions=store.provided.transactions,
    )
    building = providers.Singleton(
        IndexBuilding,
        log=store.provided.log,
        vault=store.provided.vault,
        indexes=indexes,
        points=points,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
    index_check = providers.Singleton(
        IndexCheck,
        log=store.provided.log,
        vault=store.provided.vault,
        indexes=indexes,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
    reindex = providers.Singleton(
        Reindex,
        log=store.provided.log,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=indexes,
        outbox=store.provided.outbox,
        vectors=document_vectors,
        building=building,
        check=index_check,
        transactions=store.provided.transactions,
        randomness=randomness,
    )
    status = providers.Singleton(
        ReadStatus,
        vault=store.provided.vault,
        sparse=store.provided.sparse,
        indexes=indexes,
        projection=projection,
        vectors=document_vectors,
        transactions=store.provided.transactions,
    )
