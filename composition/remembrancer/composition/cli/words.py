"""What the codes mean that answers carry: tables show words, ``--json`` the codes."""

from collections.abc import Mapping
from types import MappingProxyType

from remembrancer.domain.recall import LeftOutReason

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        # Why an answer isn't hybrid, and why recall goes by keywords.
        "legacy_candidate_selection": "keywords alone were asked for",
        "no_vector_index": "there are no vectors yet; `remembrancer reindex` makes them",
        "vector_index_behind": "the vectors are behind; `remembrancer project` carries them over",
        "vector_index_unavailable": "the vectors can't be had now; see `remembrancer doctor`",
        "no_embedder_for_index": "another model made the vectors than is set; "
        "`remembrancer reindex` makes them anew",
        "embedding_tuple_mismatch": "another model made the vectors than is admitted; "
        "`remembrancer reindex` makes them anew",
        "query_not_prepared": "the question has no vector yet; `remembrancer prepare` buys one",
        "no_usable_vector": "the model knows no word of the question",
        "impossible_query_vector": "the question's vector has no direction",
        "no_searchable_words": "no word of the question can be looked up",
        # Why something isn't in an answer or a pack.
        LeftOutReason.RANK: "others ranked higher",
        LeftOutReason.FILTER: "outside what was asked for",
        LeftOutReason.PERMISSION: "not permitted to this reader",
        LeftOutReason.STALE: "corrected or erased meanwhile",
        LeftOutReason.BUDGET: "no room in the budget",
        LeftOutReason.ERASED: "erased",
    }
)


def in_words(code: str) -> str:
    """Return what a code means; one that isn't listed says it itself."""
    return _WORDS.get(code) or code.replace("_", " ")
