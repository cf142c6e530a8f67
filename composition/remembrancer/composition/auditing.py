"""The part of the facade that audits what it holds.

What is here loads its parts when it is called: a memory at work needs none of them.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from remembrancer.composition.twin import async_twin
from remembrancer.domain.errors import InvalidInputError, SettingsError
from remembrancer.domain.money import as_utc
from remembrancer.domain.parsed import parsed_name

if TYPE_CHECKING:
    from remembrancer.application.audit.finding import AuditReport, AuditScope
    from remembrancer.application.remember import Progress
    from remembrancer.composition.container import Container


class Auditing:
    """Every invariant, over the open store."""

    def audit(
        self,
        *,
        tenant: str | None = None,
        owner: str | None = None,
        since: datetime | None = None,
        progress: "Progress | None" = None,
    ) -> "AuditReport":
        """Prove every invariant over log, vault and projections, or name what breaks it.

        Everything is read in any case; only findings about ``tenant`` and ``owner``, and about
        events from ``since`` on, are reported.  Writes nothing.  ``progress`` is called with
        (events read, events).

        Raises:
            InvalidInputError: a name or a time breaks its bounds, or nothing is recorded of it.
            StoreError: the store can't be opened a second time, for reading.
        """
        # As is said at the top.
        from remembrancer.adapters.eventlog.audit_reader import FastStateReader  # noqa: PLC0415
        from remembrancer.application.audit.audit import Audit  # noqa: PLC0415

        scope = scope_of(tenant, owner, since)
        store = self._parts().store()
        if store.audit is None:
            raise SettingsError(setting="store.backend", problem="has no way to be audited")
        with store.audit() as source:
            report = Audit(source=source, reader=FastStateReader())(scope, progress=progress)
        require_asked(report, scope)
        return report

    aaudit = async_twin(audit)

    def _parts(self) -> "Container":
        raise NotImplementedError


def require_asked(report: "AuditReport", scope: "AuditScope") -> None:
    """See that there was something to audit of who was asked for.

    Raises:
        InvalidInputError: all is sound, and nothing is recorded of that tenant or owner.
    """
    if report.is_green and report.asked == 0:
        field = "tenant" if scope.owner is None else "owner"
        name = "/".join(filter(None, (scope.tenant, scope.owner)))
        raise InvalidInputError(field=field, problem=f"nothing was ever recorded of {name}")


def scope_of(tenant: str | None, owner: str | None, since: datetime | None) -> "AuditScope":
    """Return what findings are wanted of.

    Raises:
        InvalidInputError: a name or a time breaks its bounds.
    """
    from remembrancer.application.audit.finding import AuditScope  # noqa: PLC0415  # as above

    if since is not None and not isinstance(since, datetime):
        raise InvalidInputError(field="since", problem="must be an aware time")
    return AuditScope(
        tenant=None if tenant is None else parsed_name(tenant, field="tenant"),
        owner=None if owner is None else parsed_name(owner, field="owner"),
        since=None if since is None else as_utc(since),
    )
