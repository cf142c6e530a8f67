"""Questions to the memory, and their answers."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import SUBJECTS_MAX
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.parsed import Name, Parsed, Text
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

LIMIT_MAX = 100_000
SCOPES_MAX = 256


class RecallKind(StrEnum):
    """What kind of remembering is asked for (design 4.1)."""

    AUTOMATIC = "automatic"
    """Ranked; asked by the host without a person's explicit wish."""
    DELIBERATE = "deliberate"
    """Ranked; asked for explicitly."""
    CORE = "core"
    """The entries of kind ``core`` in scope, unranked."""
    HISTORICAL = "historical"
    """Ranked among the versions that were current at ``as_of``."""
    PEOPLE = "people"
    """Ranked among the entries about the named subjects."""


class CandidateSelection(StrEnum):
    """How candidates are found."""

    HYBRID = "hybrid"
    """By vectors and keywords, as far as both are available."""
    LEGACY = "legacy"
    """By keywords alone, as before there were vectors."""


class RecallMode(StrEnum):
    """How an answer came about."""

    HYBRID = "hybrid"
    DENSE = "dense"
    SPARSE = "sparse"
    LISTED = "listed"
    """Not ranked: recall of kind ``core``."""


class LeftOutReason(StrEnum):
    """Why a candidate isn't in the answer, or an entry not in the pack."""

    RANK = "rank"
    """Others ranked higher, within the limit asked for."""
    FILTER = "filter"
    """Outside what the query asked for (subjects, point in time)."""
    PERMISSION = "permission"
    """The principal may not see it, or not any more."""
    STALE = "stale"
    """Corrected or erased since it was indexed."""
    BUDGET = "budget"
    """It doesn't fit the token budget."""
    ERASED = "erased"
    """Its original was destroyed."""


class RecallQuery(Parsed):
    """One question to one owner's memory.

    ``scopes`` are the paths the principal may read; ``read_ceiling`` the highest sensitivity.
    """

    tenant: Name
    owner: Name
    principal: Name
    scopes: Annotated[tuple[Scope, ...], Field(strict=False, min_length=1, max_length=SCOPES_MAX)]
    read_ceiling: Annotated[Sensitivity, Field(strict=False)]
    question: Annotated[Text, Field(repr=False)]
    subjects: Annotated[
        tuple[Name, ...], Field(strict=False, repr=False, max_length=SUBJECTS_MAX)
    ] = ()
    kind: Annotated[RecallKind, Field(strict=False)] = RecallKind.DELIBERATE
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = 10
    as_of: AwareDatetime | None = None
    candidate_selection: Annotated[CandidateSelection, Field(strict=False)] = (
        CandidateSelection.HYBRID
    )

    def model_post_init(self, _: object, /) -> None:
        """Check the rules that span fields."""
        if (self.kind is RecallKind.HISTORICAL) != (self.as_of is not None):
            raise InvalidInputError(
                field="RecallQuery.as_of", problem="goes with kind historical, and only with it"
            )
        if self.kind is RecallKind.PEOPLE and not self.subjects:
            raise InvalidInputError(
                field="RecallQuery.subjects", problem="must name somebody for kind people"
            )


class RecallContext(Parsed):
    """In which circumstances a question is asked (design 4.3)."""

    policy_version: Name
    retrieval_policy_version: Name
    surface: Name
    task_digest: Annotated[Name, Field(repr=False)]
    sensitivity_floor: Annotated[Sensitivity, Field(strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How an entry was found: its place and score in each list that held it."""

    dense_rank: int | None = None
    dense_score: float | None = None
    """Cosine, -1.0 to 1.0."""
    sparse_rank: int | None = None
    sparse_score: float | None = None
    """BM25, higher is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A candidate that isn't in the answer, and why."""

    entry_id: EntryId
    reason: LeftOutReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledEntry:
    """A current (or, in historical recall, then current), permitted original."""

    entry_id: EntryId
    version: int
    digest: str
    text: str = field(repr=False)
    score: float
    """Reciprocal rank fusion; 0.0 where nothing was ranked."""
    ranks: Ranks
    scope: str
    kind: str
    sensitivity: Sensitivity
    subjects: tuple[str, ...] = field(repr=False)
    metadata: dict[str, str] = field(repr=False)
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a question, best first."""

    entries: tuple[RecalledEntry, ...]
    mode: RecallMode
    mode_reason: str
    """Why it isn't hybrid, as a code such as ``no_usable_vector``; ``""`` where it is."""
    left_out: tuple[LeftOut, ...]
    """The best of the candidates that aren't in the answer."""
    left_out_count: int
    embedding_tuple: EmbeddingTuple | None
    """The space the vectors were compared in, if any were."""
    query_vector: "tuple[float, ...] | None" = field(default=None, repr=False)
