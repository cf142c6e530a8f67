"""No index is asked without its tenant (design 5), whatever is asked and a policy says."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from remembrancer.application.ports import AccessPolicy
from remembrancer.application.ports.access_policy import Access
from remembrancer.application.recall import Recall
from remembrancer.domain import EntryHeader, RecallKind, RecallQuery, Sensitivity

names = st.sampled_from(["acme", "acme-corp", "tenant", "*", "a"])
scopes = st.lists(st.sampled_from(["a", "a/b", "c"]), min_size=1, max_size=3).map(tuple)


@dataclass
class _WillingPolicy(AccessPolicy):
    """Says what it is told to say, and permits everything."""

    answer: tuple[str, ...] | None

    @override
    def owners(self, access: Access) -> tuple[str, ...] | None:
        return self.answer

    @override
    def permits(self, access: Access, entry: EntryHeader) -> bool:
        return True


class _Scopes:
    """All of a vault that deciding on filters needs."""

    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        del tenant, owners
        return ["a", "a/b", "c"]


@st.composite
def queries(draw: Callable[[st.SearchStrategy[Any]], Any]) -> RecallQuery:
    kind = draw(st.sampled_from(RecallKind))
    return RecallQuery(
        tenant=draw(names),
        owner=draw(names),
        principal=draw(names),
        scopes=draw(scopes),
        read_ceiling=draw(st.sampled_from(Sensitivity)),
        question=draw(st.text(max_size=3)),
        subjects=draw(st.lists(names, min_size=1, max_size=3).map(tuple)),
        kind=kind,
        as_of=datetime(2030, 1, 1, tzinfo=UTC) if kind is RecallKind.HISTORICAL else None,
    )


@given(queries(), st.none() | st.lists(names, max_size=3).map(tuple))
def test_every_filter_names_the_tenant_of_the_question_and_no_other(
    query: RecallQuery, owners: tuple[str, ...] | None
) -> None:
    nothing = cast("Any", None)  # what deciding on filters must not touch
    recall = Recall(
        vault=cast("Any", _Scopes()),
        sparse=nothing,
        indexes=nothing,
        policy=_WillingPolicy(owners),
        transactions=nothing,
        embedders=nothing,
    )

    for one in recall.filters(query):
        assert one["tenant"] == (query.tenant,)
        assert set(one["sensitivity"]) == {
            level.value for level in query.read_ceiling.at_or_under()
        }
        assert set(one["scope"]) <= {"a", "a/b", "c"}
        if owners is not None:
            assert set(one["owner"]) <= set(owners)
