"""The table of design section 9, said once more: a bound that changes needs a new version."""

from remembrancer.domain import bounds


def test_bounds_are_those_of_semantic_query_1() -> None:
    stated = {name: value for name, value in vars(bounds).items() if name.isupper()}

    assert stated == {
        "MECHANISM_VERSION": "semantic-query@1",
        "QUERIES_MAX": 4,
        "REQUESTS_MAX": 1,
        "RETRIES_MAX": 0,
        "REDIRECTS_MAX": 0,
        "QUEUED_MAX": 0,
        "DEADLINE_S": 10,
        "LEASE_S": 15,
        "CLEANUP_S": 3,
        "CHECK_INTERVAL_S": 1,
        "CACHE_VECTORS_MAX": 128,
        "CACHE_LIFETIME_S": 300,
        "QUERY_TEXT_BYTES_MAX": 4_096,
        "PENDING_QUERIES_MAX": 1,
        "QUANTA_PER_USD": 1_000_000,
    }
