"""What a recall may show: within tenant, owner, scope and ceiling, though an index lies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.application.house import House, a_context, a_query, an_entry, open_house
from typing_extensions import override

from remembrancer.application.entry_index import labels
from remembrancer.application.ports import (
    AccessPolicy,
    Original,
    SparseDocument,
    VectorPoint,
)
from remembrancer.application.ports.access_policy import Access
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import EntryHeader, EntryId, LeftOutReason, RecallKind, Sensitivity
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import version_id

QUESTION = "invoice service retries"
MANY = 120
"""More than the candidates that are asked for at first."""


def _ids(house: House, **changes: Any) -> set[EntryId]:
    found = house.memory.recall(a_query(QUESTION, **changes), a_context())
    return {one.entry_id for one in found.entries}


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        (("project",), ["project", "project/alpha", "project/alpha/x"]),
        (("project/alpha",), ["project/alpha", "project/alpha/x"]),
        (("project-x",), ["project-x"]),
        (("proj",), []),
        (("project/alpha/x", "project-x"), ["project-x", "project/alpha/x"]),
        (("Project",), []),
        (("project/%",), []),
    ],
    ids=lambda value: "+".join(sorted(value)) or "none",
)
def test_a_scope_covers_what_lies_under_it(
    house: House, asked: tuple[str, ...], seen: list[str]
) -> None:
    for scope in ("project", "project/alpha", "project/alpha/x", "project-x", "projects"):
        house.memory.remember(an_entry(scope=scope))

    found = house.memory.recall(a_query(QUESTION, scopes=asked), a_context())

    assert sorted(one.scope for one in found.entries) == seen


@pytest.mark.parametrize("ceiling", Sensitivity)
def test_nothing_above_the_ceiling_is_shown(house: House, ceiling: Sensitivity) -> None:
    house.memory.remember_many([an_entry(sensitivity=level) for level in Sensitivity])

    found = house.memory.recall(a_query(QUESTION, read_ceiling=ceiling), a_context())

    assert {one.sensitivity for one in found.entries} == set(ceiling.at_or_under())


def test_another_owner_or_tenant_is_never_shown(house: House) -> None:
    others = [("acme", "bob"), ("acme-corp", "ana"), ("ac", "meana"), ("ACME", "ana")]
    house.memory.remember_many([an_entry(tenant=t, owner=o) for t, o in others])
    mine = house.memory.remember(an_entry())

    assert _ids(house) == {mine}


# -- Injected policies -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lenient(AccessPolicy):
    """Looks among ``among``, and permits all of it or nothing."""

    among: tuple[str, ...] | None
    yes: bool = True

    @override
    def owners(self, access: Access) -> tuple[str, ...] | None:
        return self.among

    @override
    def permits(self, access: Access, entry: EntryHeader) -> bool:
        return self.yes


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        (Lenient(None), {"ana", "bob", "cid"}),
        (Lenient(("ana", "bob")), {"ana", "bob"}),
        (Lenient(None, yes=False), set()),
        (Lenient(()), set()),
    ],
    ids=["whole tenant", "team", "nothing", "nobody"],
)
@pytest.mark.parametrize("kind", [RecallKind.DELIBERATE, RecallKind.CORE])
def test_a_policy_widens_within_the_tenant_and_never_beyond(
    path: Path | None, policy: AccessPolicy, seen: set[str], kind: RecallKind
) -> None:
    with open_house(path, policy=policy) as house:
        ids = {
            house.memory.remember(an_entry(tenant=tenant, owner=owner, kind="core")): owner
            for tenant in ("acme", "other")
            for owner in ("ana", "bob", "cid")
        }

        found = house.memory.recall(a_query(QUESTION, kind=kind), a_context())

        assert {ids[one.entry_id] for one in found.entries} == seen
        assert len(found.entries) == len(seen)
        named = {one.entry_id for one in found.entries}
        named |= {one.entry_id for one in found.left_out}
        assert named <= set(list(ids)[:3])


@pytest.mark.parametrize("kind", [RecallKind.DELIBERATE, RecallKind.CORE])
def test_no_policy_lifts_the_ceiling(path: Path | None, kind: RecallKind) -> None:
    """So that an audit can prove of every selection what its bounds say."""
    with open_house(path, policy=Lenient(None)) as house:
        house.memory.remember(an_entry(kind="core", sensitivity=Sensitivity.RESTRICTED))
        seen = house.memory.remember(an_entry(kind="core", sensitivity=Sensitivity.PUBLIC))

        found = house.memory.recall(
            a_query(QUESTION, kind=kind, read_ceiling=Sensitivity.INTERNAL), a_context()
        )

    assert [one.entry_id for one in found.entries] == [seen]


# -- Indexes that lie --------------------------------------------------------


def _plant(house: House, place: EntryId, original: Original) -> None:
    """Write an entry that isn't in reach into both indexes as if it were Ana's best."""
    lie = labels(original) | {
        "tenant": "acme",
        "owner": "ana",
        "scope": "project/alpha",
        "sensitivity": "internal",
        "state": "current",
    }
    vector = HashingEmbedder().embed_query(QUESTION)
    active = house.store.indexes.active()
    assert active is not None
    assert vector is not None
    with house.store.transactions.begin():
        house.store.sparse.upsert_many([SparseDocument(place, QUESTION, lie)])
        house.store.indexes.store(active).upsert_many([VectorPoint(place, vector, lie)])


@pytest.fixture
def liars(path: Path | None) -> Any:
    with open_house(path) as house:
        yield house


def _lie(house: House, lie: str) -> set[EntryId]:
    """Plant more lies than are asked for at first; return the ids an answer mustn't tell."""
    texts = [an_entry(f"{QUESTION} {number}") for number in range(MANY)]
    changes: dict[str, dict[str, Any]] = {
        "other_tenant": {"tenant": "evil"},
        "other_owner": {"owner": "bob"},
        "other_scope": {"scope": "private"},
        "too_sensitive": {"sensitivity": Sensitivity.RESTRICTED},
    }
    entries = [type(one).parse({**dict(one), **changes.get(lie, {})}) for one in texts]
    ids = house.memory.remember_many(entries)
    with house.store.transactions.over_all_tenants():
        kept = house.store.vault.current(ids)
    if lie == "erased":
        house.memory.erase_owner(tenant="acme", owner="ana", reason="user_request")
    with house.store.transactions.begin():
        for entry_id in ids:
            _plant(house, entry_id, kept[entry_id])
    return set(ids) if lie == "other_tenant" else set()


def _has_row_security(house: House) -> bool:
    return house.container.settings().store.backend == "postgres"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("other_tenant", None),
        ("other_owner", LeftOutReason.PERMISSION),
        ("other_scope", LeftOutReason.PERMISSION),
        ("too_sensitive", LeftOutReason.PERMISSION),
        ("erased", LeftOutReason.STALE),
    ],
)
def test_what_an_index_shouldn_t_have_offered_is_dropped_and_made_up_for(
    liars: House, lie: str, reason: LeftOutReason | None
) -> None:
    if _has_row_security(liars):
        if lie == "other_owner":  # An id stands once in a tenant.
            with pytest.raises(StoreCorruptError):
                _lie(liars, lie)
            return
        if lie == "other_tenant":  # Whose it is isn't to be seen: it is nobody's.
            reason = LeftOutReason.STALE
    untold = _lie(liars, lie)
    mine = liars.memory.remember_many([an_entry("an invoice"), an_entry("some service")])

    found = liars.memory.recall(a_query(QUESTION, limit=2), a_context())

    assert {one.entry_id for one in found.entries} == set(mine)
    assert {one.reason for one in found.left_out} == ({reason} if reason else set())
    if reason is None:
        assert not untold & {one.entry_id for one in found.left_out}


def test_a_superseded_version_offered_as_current_is_stale(liars: House) -> None:
    entry_id = liars.memory.remember(an_entry(QUESTION))
    [old] = liars.store.vault.history(entry_id)
    liars.memory.correct(entry_id, text="nothing of the kind", reason="outdated")
    mine = liars.memory.remember(an_entry("an invoice"))
    _plant(liars, version_id(entry_id, 1), old)

    found = liars.memory.recall(a_query("invoice", limit=5), a_context())

    assert {one.entry_id for one in found.entries} == {mine, entry_id}
    assert [(one.entry_id, one.reason) for one in found.left_out] == [
        (entry_id, LeftOutReason.STALE)
    ]


def test_an_id_nobody_knows_is_stale(liars: House) -> None:
    mine = liars.memory.remember(an_entry())
    [original] = liars.store.vault.history(mine)
    stranger = EntryId(version_id(mine, 99))
    _plant(liars, stranger, original)

    found = liars.memory.recall(a_query(QUESTION), a_context())

    assert [one.entry_id for one in found.entries] == [mine]
    assert [(one.entry_id, one.reason) for one in found.left_out] == [
        (stranger, LeftOutReason.STALE)
    ]
