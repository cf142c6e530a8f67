import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.scope import covered_by_any, covers

paths = st.lists(st.sampled_from(["a", "b", "a-b", "ab", "a_b"]), min_size=1, max_size=4).map(
    "/".join
)


@pytest.mark.parametrize(
    ("scope", "other", "covered"),
    [
        ("project", "project", True),
        ("project", "project/alpha", True),
        ("project", "project/alpha/beta", True),
        ("project", "project-x", False),
        ("project", "projects", False),
        ("project/alpha", "project", False),
        ("project/alpha", "project/alphabet", False),
        ("project", "Project/alpha", False),
        ("a%", "ab", False),
        ("a_", "ab/c", False),
    ],
)
def test_scope_covers_itself_and_what_lies_under_it(
    scope: str, other: str, *, covered: bool
) -> None:
    assert covers(scope, other) is covered


@given(paths, paths)
def test_covering_is_about_whole_names(scope: str, other: str) -> None:
    by_names = other.split("/")[: scope.count("/") + 1] == scope.split("/")

    assert covers(scope, other) is by_names


@given(paths, paths, paths)
def test_covering_passes_down(one: str, two: str, three: str) -> None:
    if covers(one, two) and covers(two, three):
        assert covers(one, three)


@given(paths, paths)
def test_only_the_same_scope_covers_and_is_covered(one: str, other: str) -> None:
    assert (covers(one, other) and covers(other, one)) is (one == other)


@given(st.lists(paths, max_size=4).map(tuple), paths)
def test_one_covering_scope_is_enough(scopes: tuple[str, ...], other: str) -> None:
    assert covered_by_any(scopes, other) is any(covers(scope, other) for scope in scopes)
