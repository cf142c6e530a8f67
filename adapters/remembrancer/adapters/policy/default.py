"""The default of design section 4.1."""

from typing_extensions import override

from remembrancer.application.ports.access_policy import Access, AccessPolicy
from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.scope import covered_by_any


class DefaultAccessPolicy(AccessPolicy):
    """Same tenant and owner, scope covered, sensitivity at or under the read ceiling."""

    @override
    def owners(self, access: Access) -> tuple[str, ...]:
        return (access.owner,)

    @override
    def permits(self, access: Access, entry: EntryHeader) -> bool:
        return (
            entry.tenant == access.tenant
            and entry.owner == access.owner
            and covered_by_any(access.scopes, entry.scope)
            and entry.sensitivity.rank <= access.read_ceiling.rank
        )
