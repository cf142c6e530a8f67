from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from typing_extensions import override

from remembrancer.adapters.policy.default import DefaultAccessPolicy
from remembrancer.application.ports.access_policy import Access, AccessPolicy
from remembrancer.contracts.access_policy import AccessPolicyContract, accesses, headers
from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

ACCESS = Access(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    scopes=("project", "home/garden"),
    read_ceiling=Sensitivity.INTERNAL,
)
ENTRY = EntryHeader(
    tenant="acme",
    owner="ana",
    entry_id=EntryId(UUID(int=7)),
    version=1,
    scope="project/alpha",
    kind="note",
    sensitivity=Sensitivity.INTERNAL,
)


class TestDefaultAccessPolicy(AccessPolicyContract):
    @override
    def policy(self) -> AccessPolicy:
        return DefaultAccessPolicy()

    def test_permits_an_owners_entry_in_scope_at_the_ceiling(self) -> None:
        assert DefaultAccessPolicy().permits(ACCESS, ENTRY)

    @pytest.mark.parametrize(
        "entry",
        [
            ENTRY._replace(tenant="acme-corp"),
            ENTRY._replace(owner="ben"),
            ENTRY._replace(scope="project-x"),
            ENTRY._replace(scope="home"),
            ENTRY._replace(sensitivity=Sensitivity.CONFIDENTIAL),
        ],
        ids=["tenant", "owner", "scope", "wider scope", "sensitivity"],
    )
    def test_refuses_what_differs_in_one_label(self, entry: EntryHeader) -> None:
        assert not DefaultAccessPolicy().permits(ACCESS, entry)

    @given(access=accesses)
    def test_looks_among_the_owners_own_entries(self, access: Access) -> None:
        assert DefaultAccessPolicy().owners(access) == (access.owner,)

    @given(access=accesses, entry=headers)
    def test_a_lower_ceiling_never_shows_more(self, access: Access, entry: EntryHeader) -> None:
        lower = replace(access, read_ceiling=Sensitivity.PUBLIC)

        if DefaultAccessPolicy().permits(lower, entry):
            assert DefaultAccessPolicy().permits(access, entry)

    @given(entry=headers)
    def test_nothing_is_seen_without_a_scope(self, entry: EntryHeader) -> None:
        access = replace(ACCESS, tenant=entry.tenant, owner=entry.owner, scopes=())

        assert not DefaultAccessPolicy().permits(access, entry)
