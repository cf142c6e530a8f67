"""The use cases that look back, made where somebody asks: a memory at work needs none of them."""

from typing import TYPE_CHECKING

from remembrancer.composition.store import Store

if TYPE_CHECKING:
    from remembrancer.application.explain import Explain
    from remembrancer.application.explain_reservation import ExplainReservation
    from remembrancer.application.export import Export
    from remembrancer.application.history import ReadHistory
    from remembrancer.application.ports import AccessPolicy, Clock
    from remembrancer.application.restore import Restore
    from remembrancer.application.timeline import ReadTimeline


def explain(store: Store, policy: "AccessPolicy") -> "Explain":
    """Return the use case over a store."""
    from remembrancer.application.explain import Explain  # noqa: PLC0415  # see the module

    return Explain(
        log=store.log,
        vault=store.vault,
        sessions=store.sessions,
        policy=policy,
        transactions=store.transactions,
    )


def explain_reservation(store: Store, clock: "Clock") -> "ExplainReservation":
    """Return the use case over a store."""
    from remembrancer.application.explain_reservation import (  # noqa: PLC0415  # as above
        ExplainReservation,
    )

    return ExplainReservation(
        archive=store.archive, log=store.log, transactions=store.transactions, clock=clock
    )


def history(store: Store, policy: "AccessPolicy") -> "ReadHistory":
    """Return the use case over a store."""
    from remembrancer.application.history import ReadHistory  # noqa: PLC0415  # as above

    return ReadHistory(
        log=store.log, vault=store.vault, policy=policy, transactions=store.transactions
    )


def timeline(store: Store) -> "ReadTimeline":
    """Return the use case over a store."""
    from remembrancer.application.timeline import ReadTimeline  # noqa: PLC0415  # as above

    return ReadTimeline(archive=store.archive, log=store.log, transactions=store.transactions)


def export(store: Store) -> "Export":
    """Return the use case over a store."""
    from remembrancer.application.export import Export  # noqa: PLC0415  # as above

    return Export(
        archive=store.archive,
        log=store.log,
        vault=store.vault,
        transactions=store.transactions,
    )


def restore(store: Store) -> "Restore":
    """Return the use case over a store."""
    from remembrancer.application.restore import Restore  # noqa: PLC0415  # as above

    return Restore(
        archive=store.archive,
        log=store.log,
        vault=store.vault,
        sessions=store.sessions,
        sparse=store.sparse,
        transactions=store.transactions,
    )
