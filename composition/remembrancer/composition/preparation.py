"""What an admitted configuration brings: lookup, preparer, remote indexing, and their end.

Built by :func:`admitted_preparation` from an admission that was just made, and from nothing else.
A watch looks at the admission twice a second; when it is gone, the caches are emptied, the
surfaces' contexts end in the log, and what is in flight stops at its next check.
"""

import os
from dataclasses import dataclass
from threading import Event, Thread
from typing import Protocol
from weakref import ref

from remembrancer.adapters.provider.embedding_provider import OpenAICompatibleProvider
from remembrancer.adapters.worker.anyio_worker import AnyioWorker
from remembrancer.application.cache_contexts import CacheContexts
from remembrancer.application.paid_request import PaidRequest
from remembrancer.application.ports import Clock, Randomness
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.embedding_provider import EmbeddingProvider
from remembrancer.application.ports.guards import Guards
from remembrancer.application.prepare_queries import PrepareQueries
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.application.remote_indexing import RemoteIndexing
from remembrancer.composition.remote import (
    RemoteSettings,
    configuration_of,
    guards_of,
    secret_of,
)
from remembrancer.composition.store import Store
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError, RemembrancerError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import AdmittedConfiguration, require_admitted

WATCH_INTERVAL_S = 0.5
WITHDRAWN = "withdrawn"


class Admission(AdmissionSource, Protocol):
    """An admission that this process can end for itself."""

    def withdraw(self) -> None:
        """Admit nothing any more in this process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The parts that exist only under an admission."""

    admission: Admission
    contexts: CacheContexts
    lookup: PreparedQueries
    preparer: PrepareQueries
    documents: RemoteIndexing

    def withdraw(self, reason: str = WITHDRAWN) -> None:
        """End it for good: nothing is looked up, prepared or bought any more."""
        self.admission.withdraw()
        for surface in self.lookup.withdraw():
            try:
                self.contexts.withdraw(surface, reason=reason)
            except RemembrancerError:
                # The caches are empty; the log says so as soon as the surface is bound again.
                continue


class AdmissionWatch:
    """Withdraws a preparation as soon as its admission is gone; in forked children too."""

    def __init__(self, preparation: Preparation, admitted: AdmittedConfiguration) -> None:
        self._preparation = preparation
        self._digest = admitted.digest
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._begin()
        if hasattr(os, "register_at_fork"):
            watch = ref(self)  # What was registered stays so for ever; the watch must not.
            os.register_at_fork(after_in_child=lambda: _again(watch()))

    def stop(self) -> None:
        """Look no more; returns once the thread has ended."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def restart(self) -> None:
        """Begin to look again, in a child that has none of its parent's threads."""
        if self._thread is not None and not self._stopped.is_set():
            self._stopped = Event()
            self._begin()

    def _begin(self) -> None:
        self._thread = Thread(target=self._run, name="remembrancer-admission", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(WATCH_INTERVAL_S):
            if not self._holds():
                self._preparation.withdraw()
                return

    def _holds(self) -> bool:
        try:
            return self._preparation.admission.admitted().digest == self._digest
        except Exception:  # noqa: BLE001  # an admission that can't be read is none
            return False


def _again(watch: AdmissionWatch | None) -> None:
    if watch is not None:
        watch.restart()


def admitted_preparation(
    remote: RemoteSettings,
    admission: Admission,
    store: Store,
    *,
    clock: Clock,
    randomness: Randomness,
) -> tuple[Preparation, AdmissionWatch]:
    """Build the parts of the configuration that ``admission`` admits now.

    Raises:
        NotAdmittedError: it admits nothing; nothing was built.
    """
    admitted = require_admitted(admission.admitted())
    provider, guards = provider_of(remote), guards_of(remote, warm=True)
    if configuration_of(remote, guards).digest != admitted.digest:
        # The settings have changed since they were read: these parts would be another's.
        raise NotAdmittedError(tuple(gate.value for gate in Gate))
    preparation = preparation_under(
        admission,
        admitted.configuration,
        provider=provider,
        guards=guards,
        destination=provider.destination,
        store=store,
        clock=clock,
        randomness=randomness,
    )
    return preparation, AdmissionWatch(preparation, admitted)


def preparation_under(  # every part that differs between the real thing and a rehearsal
    admission: Admission,
    configuration: Configuration,
    *,
    provider: EmbeddingProvider,
    guards: Guards,
    destination: str,
    store: Store,
    clock: Clock,
    randomness: Randomness,
) -> Preparation:
    """Wire lookup, preparer and remote indexing.

    They ask ``admission`` each time, and work while it admits exactly ``configuration``.
    """
    lookup = PreparedQueries(
        clock=clock, secret=store.secret.secret(), configuration=configuration
    )
    contexts = CacheContexts(log=store.log, transactions=store.transactions, clock=clock)
    paid_request = PaidRequest(
        ledger=store.ledger,
        provider=provider,
        clock=clock,
        randomness=randomness,
        worker=AnyioWorker(),
    )
    return Preparation(
        admission=admission,
        contexts=contexts,
        lookup=lookup,
        preparer=PrepareQueries(
            admission=admission,
            contexts=contexts,
            prepared=lookup,
            guards=guards,
            destination=destination,
            paid_request=paid_request,
            clock=clock,
            worker=AnyioWorker(),
        ),
        documents=RemoteIndexing(
            admission=admission,
            configuration=configuration,
            guards=guards,
            destination=destination,
            keys=lookup.keys,
            paid_request=paid_request,
            clock=clock,
        ),
    )


def provider_of(remote: RemoteSettings) -> OpenAICompatibleProvider:
    """Return the provider's adapter; nothing is connected, nor is an HTTP client loaded."""
    provider = remote.provider
    return OpenAICompatibleProvider(
        url=provider.url,
        model=provider.model,
        secret=secret_of(provider),
        dimensions=provider.dimensions if provider.ask_for_dimensions else None,
        ca_file=provider.ca_file,
        proxy_url=provider.proxy_url,
    )
