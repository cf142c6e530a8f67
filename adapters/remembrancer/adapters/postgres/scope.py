"""For whom a thread reads and writes: what row security is told (adr/0018)."""

from typing import NamedTuple

from remembrancer.domain.errors import InvalidInputError


class Scope(NamedTuple):
    """One owner's rows, or all of a tenant's."""

    tenant: str
    owner: str | None
    """None for all owners of the tenant; then nothing can be added."""

    @property
    def owned(self) -> tuple[str, str]:
        """Tenant and owner, where there must be one.

        Raises:
            InvalidInputError: there is none.
        """
        if self.owner is None:
            raise InvalidInputError(
                field="owner", problem="name the owner: PostgreSQL adds no row without one"
            )
        return self.tenant, self.owner


def within(block: Scope | None, *, tenant: str | None, owner: str | None) -> Scope:
    """Return the scope of a call: its block's, narrowed by what it names itself.

    Args:
        block: what the innermost ``acting_for`` says; None outside of one.
        tenant: whom the call names; None if it names nobody.
        owner: of that tenant; None if it names nobody.

    Raises:
        InvalidInputError: neither names a tenant, or they name different ones.
    """
    if block is None:
        if not tenant:
            raise InvalidInputError(
                field="tenant",
                problem="name the tenant: without one PostgreSQL shows nobody's rows",
            )
        return Scope(tenant, owner)
    if tenant is not None and tenant != block.tenant:
        raise InvalidInputError(field="tenant", problem="isn't the one that is acted for")
    if block.owner is None:
        return Scope(block.tenant, owner)
    if owner is not None and owner != block.owner:
        raise InvalidInputError(field="owner", problem="isn't the one that is acted for")
    return block
