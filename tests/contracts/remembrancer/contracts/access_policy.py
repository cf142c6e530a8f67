"""What every access policy promises, a host's own too: it widens within the tenant, never beyond.

Enrol an adapter by subclassing :class:`AccessPolicyContract`::

    class TestMyPolicy(AccessPolicyContract):
        def policy(self) -> AccessPolicy:
            return MyPolicy()
"""

from abc import ABC, abstractmethod
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from remembrancer.application.ports.access_policy import Access, AccessPolicy
from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

# Few names, and such as begin like one another, so that near misses come up often.
names = st.sampled_from(["acme", "acme-corp", "ana", "ana/x"])
scopes = st.sampled_from(["project", "project/alpha", "project-x", "project/alpha/b"])
sensitivities = st.sampled_from(Sensitivity)
accesses = st.builds(
    Access,
    tenant=names,
    owner=names,
    principal=names,
    scopes=st.lists(scopes, max_size=2).map(tuple),
    read_ceiling=sensitivities,
)
headers = st.builds(
    EntryHeader,
    tenant=names,
    owner=names,
    entry_id=st.just(EntryId(UUID(int=7))),
    version=st.integers(1, 3),
    scope=scopes,
    kind=st.sampled_from(["note", "core"]),
    sensitivity=sensitivities,
)


class AccessPolicyContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the policy."""

    @abstractmethod
    def policy(self) -> AccessPolicy:
        """Make a policy."""

    @given(access=accesses, entry=headers)
    def test_never_permits_another_tenants_entry(self, access: Access, entry: EntryHeader) -> None:
        if entry.tenant != access.tenant:
            assert not self.policy().permits(access, entry)

    @given(access=accesses, entry=headers)
    def test_looks_among_the_owners_of_all_it_permits(
        self, access: Access, entry: EntryHeader
    ) -> None:
        owners = self.policy().owners(access)

        if self.policy().permits(access, entry):
            assert owners is None or entry.owner in owners

    @given(access=accesses, entry=headers)
    def test_answers_the_same_each_time(self, access: Access, entry: EntryHeader) -> None:
        policy = self.policy()

        assert policy.permits(access, entry) == policy.permits(access, entry)
        assert policy.owners(access) == policy.owners(access)
