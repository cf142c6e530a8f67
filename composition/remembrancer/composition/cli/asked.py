"""A question as the options of a command put it."""

from dataclasses import dataclass
from datetime import datetime

from remembrancer.composition.cli.options import Opened, given, sensitivity_of
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.recall import CandidateSelection, RecallContext, RecallKind, RecallQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was given; None where the settings decide."""

    tenant: str | None
    owner: str | None
    principal: str | None
    scopes: list[str] | None
    ceiling: str | None
    kind: RecallKind
    limit: int
    subjects: list[str] | None
    as_of: str | None = None
    sparse: bool = False

    def query(self, session: Opened, question: str) -> RecallQuery:
        """Return the question with what was left out taken from the settings."""
        who = session.identity
        return RecallQuery(
            tenant=given(self.tenant, who.tenant),
            owner=given(self.owner, who.owner),
            principal=given(self.principal, who.principal),
            scopes=tuple(self.scopes or (who.scope,)),
            read_ceiling=sensitivity_of(self.ceiling, who.read_ceiling, option="--ceiling"),
            question=question,
            subjects=tuple(self.subjects or ()),
            kind=self.kind,
            limit=self.limit,
            as_of=_time(self.as_of),
            candidate_selection=(
                CandidateSelection.LEGACY if self.sparse else CandidateSelection.HYBRID
            ),
        )


def context_of(session: Opened) -> RecallContext:
    """Return the circumstances of a question on the command line."""
    return RecallContext(
        policy_version="default",
        retrieval_policy_version="default",
        surface="cli",
        task_digest="none",
        sensitivity_floor=session.identity.sensitivity,
    )


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidInputError(
            field="--as-of", problem="must be a time with its zone, such as 2026-11-30T12:00:00Z"
        )
    return time
