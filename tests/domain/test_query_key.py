import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.query_key import QueryKeys, query_json
from remembrancer.domain.recall import CandidateSelection, RecallContext, RecallKind, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

SECRET = bytes(range(32))
CONDITIONS: dict[str, Any] = {
    "embedding_tuple": {"model": "small", "dimensions": 768},
    "pricing": {"usd_per_million_tokens": "0.02"},
    "provider": {"url": "https://eu.example.com:443/v1/embeddings", "region": "eu"},
    "mechanism_version": "semantic-query@1",
}
QUERY: dict[str, Any] = {
    "tenant": "acme",
    "owner": "ana",
    "principal": "ana",
    "scopes": ("project/alpha",),
    "read_ceiling": Sensitivity.INTERNAL,
    "question": "What did we agree?",
    "subjects": ("importer",),
    "kind": RecallKind.DELIBERATE,
    "limit": 10,
    "candidate_selection": CandidateSelection.HYBRID,
}
CONTEXT: dict[str, Any] = {
    "policy_version": "policy@1",
    "retrieval_policy_version": "retrieval@1",
    "surface": "cli",
    "task_digest": "7" * 64,
    "sensitivity_floor": Sensitivity.PUBLIC,
}
THEN = datetime(2030, 1, 1, tzinfo=UTC)
HISTORICAL = {"kind": RecallKind.HISTORICAL, "as_of": THEN}


def key(
    query: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    conditions: dict[str, Any] | None = None,
    secret: bytes = SECRET,
) -> bytes:
    keys = QueryKeys(secret=secret, conditions=CONDITIONS | (conditions or {}))
    return keys.key(
        RecallQuery(**QUERY | (query or {})), RecallContext(**CONTEXT | (context or {}))
    )


def test_the_same_query_in_the_same_context_has_the_same_key() -> None:
    assert key() == key()
    assert len(key()) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "acme-corp"},
        {"owner": "bea"},
        {"principal": "bea"},
        {"scopes": ("project",)},
        {"scopes": ("project/alpha", "project/beta")},
        {"read_ceiling": Sensitivity.PUBLIC},
        {"question": "what did we agree?"},
        {"question": "What did we agree? "},
        {"subjects": ()},
        {"subjects": ("importer", "exporter")},
        {"kind": RecallKind.AUTOMATIC},
        {"kind": RecallKind.PEOPLE},
        {"limit": 11},
        {"candidate_selection": CandidateSelection.LEGACY},
        HISTORICAL,
    ],
    ids=str,
)
def test_every_part_of_the_query_counts(change: dict[str, Any]) -> None:
    assert key(query=change) != key()


@pytest.mark.parametrize(
    "change",
    [
        {"policy_version": "policy@2"},
        {"retrieval_policy_version": "retrieval@2"},
        {"surface": "ide"},
        {"task_digest": "8" * 64},
        {"sensitivity_floor": Sensitivity.INTERNAL},
    ],
    ids=str,
)
def test_every_part_of_the_context_counts(change: dict[str, Any]) -> None:
    assert key(context=change) != key()


@pytest.mark.parametrize(
    "change",
    [
        {"embedding_tuple": {"model": "small", "dimensions": 512}},
        {"pricing": {"usd_per_million_tokens": "0.03"}},
        {"provider": CONDITIONS["provider"] | {"region": "us"}},
        {"mechanism_version": "semantic-query@2"},
    ],
    ids=str,
)
def test_every_condition_counts(change: dict[str, Any]) -> None:
    assert key(conditions=change) != key()


def test_another_installation_has_other_keys() -> None:
    assert key(secret=bytes(32)) != key()


def test_names_that_run_together_alike_are_kept_apart() -> None:
    assert key(query={"tenant": "a", "owner": "b_c"}) != key(query={"tenant": "a_b", "owner": "c"})
    assert key(query={"subjects": ("a,b",)}) != key(query={"subjects": ("a", "b")})
    assert key(query={"question": 'x","subjects":["y'}) != key(query={"question": "x"})


def test_one_instant_in_two_zones_is_one_question() -> None:
    there = THEN.astimezone(timezone(timedelta(hours=9)))

    assert key(query=HISTORICAL | {"as_of": there}) == key(query=HISTORICAL)


def test_a_key_is_the_keyed_hash_of_canonical_json() -> None:
    query, context = RecallQuery(**QUERY), RecallContext(**CONTEXT)
    conditions = CONDITIONS | {"context": context.model_dump(mode="json")}
    whole = canonical_json([conditions, query.model_dump(mode="json")])

    expected = hashlib.blake2b(whole, key=SECRET, person=b"rmb query key 1", digest_size=32)

    assert key() == expected.digest()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(
    lambda name: bool(name.strip()) and len(name) < 100
)


@given(question=texts, subjects=st.lists(names, max_size=3), owner=names)
def test_a_query_is_spelt_as_canonical_json_spells_it(
    question: str, subjects: list[str], owner: str
) -> None:
    query = RecallQuery(**QUERY | {"question": question, "subjects": subjects, "owner": owner})

    assert query_json(query).encode() == canonical_json(query.model_dump(mode="json"))


def test_a_new_field_of_the_query_would_be_noticed() -> None:
    query = RecallQuery(**QUERY | HISTORICAL)
    spelt = canonical_json(query.model_dump(mode="json") | {"as_of": THEN.isoformat()})

    assert query_json(query).encode() == spelt


def test_contexts_that_take_turns_keep_their_keys() -> None:
    keys = QueryKeys(secret=SECRET, conditions=CONDITIONS)
    query = RecallQuery(**QUERY)
    cli, ide = RecallContext(**CONTEXT), RecallContext(**CONTEXT | {"surface": "ide"})

    turns = [keys.key(query, context) for context in (cli, ide, cli, ide)]

    assert turns[:2] == turns[2:]
    assert turns[0] != turns[1]


def test_digests_that_are_stored_are_keyed_too() -> None:
    keys = QueryKeys(secret=SECRET, conditions=CONDITIONS)
    other = QueryKeys(secret=bytes(32), conditions=CONDITIONS)
    context = RecallContext(**CONTEXT)

    assert keys.context(context) != other.context(context)
    assert keys.request([b"a" * 32]) != other.request([b"a" * 32])
    assert keys.request([b"a" * 32]) != keys.request([b"a" * 32, b"b" * 32])
    assert len(keys.request([b"a" * 32])) == 64


@pytest.mark.parametrize("length", [0, 15, 65])
def test_a_secret_that_protects_nothing_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="secret"):
        QueryKeys(secret=bytes(length), conditions=CONDITIONS)


def test_the_secret_does_not_show() -> None:
    keys = QueryKeys(secret=b"canary-secret-canary-secret", conditions=CONDITIONS)

    assert "canary" not in repr(keys)
