"""The ports of a simulated host: each call is an arrival at which something can go wrong."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from tests.simulation.trouble import CURRENT, KilledError, Undertaking
from typing_extensions import override

from remembrancer.application.ports import Randomness
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.guards import Guards, GuardVerdict
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.composition.store import Store
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.release import AdmittedConfiguration
from remembrancer.domain.sensitivity import Sensitivity

if TYPE_CHECKING:
    from tests.simulation.host import Host

_Result = TypeVar("_Result")


def arrive(host: "Host", name: str, call: Callable[[], _Result]) -> _Result:
    """Make a port call of a host's, as the undertaking that is under way has it."""
    if host.dead:
        raise KilledError
    undertaking = CURRENT.get()
    return call() if undertaking is None else undertaking.call(name, call)


class Port:
    """Any blocking port: its methods are counted calls."""

    def __init__(self, name: str, inner: Any, host: "Host") -> None:
        self._name = name
        self._inner = inner
        self._host = host

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def called(*args: Any, **kwargs: Any) -> Any:
            def call() -> Any:
                result = found(*args, **kwargs)
                # A stream is read while it is iterated over: here, so that it can fail here.
                return iter(list(result)) if name == "read" else result

            return arrive(self._host, f"{self._name}.{name}", call)

        return called


class TransactionsPort(Port):
    """Transactions: something can go wrong before the first statement and after the last."""

    def begin(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Begin; see the port."""
        return self._inside("begin", alone=alone)

    def snapshot(self) -> AbstractContextManager[None]:
        """Take a snapshot; see the port."""
        return self._inside("snapshot")

    @contextmanager
    def _inside(self, name: str, **how: bool) -> Generator[None]:
        undertaking = CURRENT.get()
        arrive(self._host, f"transactions.{name}", lambda: None)
        with getattr(self._inner, name)(**how), _deeper(undertaking):
            yield
            if name == "begin":
                arrive(self._host, "transactions.before_commit", lambda: None)
        # The commit is done: what goes wrong now is that nobody hears of it.
        if name == "begin" and not (undertaking and undertaking.in_transaction):
            arrive(self._host, "transactions.committed", lambda: None)


class LedgerPort(Port):
    """The ledger: something can go wrong inside a decision, too."""

    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        """Decide; see the port."""
        undertaking = CURRENT.get()

        def decided(held: HeldLedger) -> _Result:
            with _deeper(undertaking):
                # What goes wrong after the decision comes before its commit.
                return arrive(self._host, "ledger.decision", lambda: decision(held))

        def call() -> _Result:
            result: _Result = self._inner.decide(tenant, owner, decided, about=about)
            return result

        return arrive(self._host, "ledger.decide", call)


@contextmanager
def _deeper(undertaking: Undertaking | None) -> Generator[None]:
    if undertaking is None:
        yield
        return
    undertaking.in_transaction += 1
    try:
        yield
    finally:
        undertaking.in_transaction -= 1


class RandomnessPort(Randomness):
    """Chance; an undertaking knows the ids that its requests drew."""

    def __init__(self, inner: Randomness, host: "Host") -> None:
        self._inner = inner
        self._host = host

    @override
    def bytes(self, count: int) -> bytes:
        return self._inner.bytes(count)

    @override
    def uuid(self) -> UUID:
        drawn = arrive(self._host, "randomness.uuid", self._inner.uuid)
        undertaking = CURRENT.get()
        if undertaking is not None:
            undertaking.reservations.append(drawn)
        return drawn


class GuardsPort(Guards):
    """The real guards."""

    def __init__(self, inner: Guards, host: "Host") -> None:
        self._inner = inner
        self._host = host

    @property
    @override
    def rule_sets(self) -> tuple[str, ...]:
        return self._inner.rule_sets

    @property
    @override
    def digest(self) -> str:
        return self._inner.digest

    @override
    def check(self, text: str, *, declared: Sensitivity | None, destination: str) -> GuardVerdict:
        return arrive(
            self._host,
            "guards.check",
            lambda: self._inner.check(text, declared=declared, destination=destination),
        )


class AdmissionPort(AdmissionSource):
    """What is admitted in the world now, unless this process has ended it for itself."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._ended = False

    @override
    def admitted(self) -> AdmittedConfiguration:
        return arrive(self._host, "admission.admitted", self._now)

    def withdraw(self) -> None:
        """Admit nothing any more in this process."""
        self._ended = True

    def _now(self) -> AdmittedConfiguration:
        admitted = self._host.world.admitted
        if self._ended or admitted is None:
            raise NotAdmittedError(())
        return admitted


def ports_of(store: Store, host: "Host") -> Store:
    """Return the store as a host sees it."""
    port: Any = Port
    transactions: Any = TransactionsPort("transactions", store.transactions, host)
    ledger: Any = LedgerPort("ledger", store.ledger, host)
    return replace(
        store,
        transactions=transactions,
        log=port("log", store.log, host),
        vault=port("vault", store.vault, host),
        sessions=port("sessions", store.sessions, host),
        sparse=port("sparse", store.sparse, host),
        indexes=port("indexes", store.indexes, host),
        ledger=ledger,
    )
