"""Whether a selection holds what its recorded bounds let through, and nothing else.

Who may be looked among is a policy's to widen within the tenant, and no event says how far it did:
an entry of another owner is no finding.  Scopes and ceiling are the question's own, and no policy
goes beyond them (design 4.1).

A selection's entries are in other streams.  Labels and bounds are few, whatever a log holds, so
each gets a number that goes along with the fact that is joined (:mod:`.joined`).
"""

from math import isfinite
from typing import Final

from typing_extensions import override

from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.joined import Joined, Offer, Share, problem_of, triples_of
from remembrancer.application.audit.reading import RANKS_ARE_SOUND, State
from remembrancer.domain.scope import covered_by_any
from remembrancer.domain.sensitivity import Sensitivity

PERMITTED = Invariant(
    name="selected-was-permitted",
    sentence="A selection's bounds name its own tenant and owner, and each selected version lies "
    "in a scope and at a sensitivity that they let through.",
    source="seed L3; design 4.1",
)
FOUND = Invariant(
    name="ranks-are-sound",
    sentence="Ranks count from 1, scores are finite, and a rank by vectors has a space in which "
    "they were compared.",
    source="seed L3; design 4.1",
)
INVARIANTS: Final = (PERMITTED, FOUND)

OUTSIDE: Final = "outside"
LABELS_BYTES_MAX: Final = 16 << 20
"""Of labels and bounds that are told apart, roughly; a real log has some kilobytes."""

_STRING_BYTES: Final = 64
_CEILINGS: Final = frozenset(
    tuple(one.value for one in ceiling.at_or_under()) for ceiling in Sensitivity
)
_NOT_COMPARED: Final = 0

_Label = tuple[str, str]
_Bound = tuple[tuple[str, ...], tuple[str, ...]]


class Labels:
    """Numbers for the labels of versions and for the bounds of selections; 0 when too many."""

    def __init__(self) -> None:
        self._numbers: dict[_Label | _Bound, int] = {}
        self._labels: dict[int, _Label] = {}
        self._bounds: dict[int, _Bound] = {}
        self._left = LABELS_BYTES_MAX
        self._fitting: dict[tuple[int, int], bool] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether there were more than are told apart."""
        return self._left <= 0

    def of_version(self, scope: str, sensitivity: str) -> int:
        """Return the number of a version's labels."""
        label = (scope, sensitivity)
        number = self._numbers.get(label)
        if number is None:
            number = self._new(label, (scope,))
            self._labels[number] = label
        return number

    def of_bounds(self, scopes: list[str], sensitivities: list[str]) -> int:
        """Return the number of what a selection was allowed."""
        bound = (tuple(scopes), tuple(sensitivities))
        number = self._numbers.get(bound)
        if number is None:
            number = self._new(bound, bound[0])
            self._bounds[number] = bound
        return number

    def fit(self, label: int, bound: int) -> bool:
        """Say whether a bound lets labels through; yes for what isn't told apart."""
        if _NOT_COMPARED in {label, bound}:
            return True
        pair = (label, bound)
        known = self._fitting.get(pair)
        if known is None:
            scope, sensitivity = self._labels[label]
            scopes, sensitivities = self._bounds[bound]
            known = sensitivity in sensitivities and covered_by_any(scopes, scope)
            if len(self._fitting) < LABELS_BYTES_MAX // _STRING_BYTES // 4:
                self._fitting[pair] = known
        return known

    def _new(self, value: _Label | _Bound, names: tuple[str, ...]) -> int:
        self._left -= sum(_STRING_BYTES + len(name) for name in ("", *names))
        if self._left <= 0:
            return _NOT_COMPARED
        number = len(self._numbers) + 1
        self._numbers[value] = number
        return number


class PermittedVersions(Joined):
    """Selections want versions of entries: offered with their labels, wanted with their bounds.

    The numbers of these stand where other relations say since when something holds.
    """

    def __init__(self, share: Share, labels: Labels) -> None:
        super().__init__(share, once=False)
        self._labels = labels

    @override
    def unmet(self) -> dict[int, Offer | None]:
        unmet: dict[int, Offer | None] = {}
        fit, fitting = self._labels.fit, set[tuple[int, int]]()
        for offered, wanted in zip(self._offered, self._wanted, strict=True):
            if not wanted:
                continue
            facts = {number: (label, at) for number, label, at in reversed(triples_of(offered))}
            offer_of = facts.get
            fitting.clear()
            for number, bound, at in triples_of(wanted):
                offer = offer_of(number)
                if offer is None or offer[1] >= at:
                    unmet[number] = offer
                elif (pair := (offer[0], bound)) not in fitting:
                    if fit(*pair):
                        fitting.add(pair)
                    else:
                        unmet[number] = offer
        return unmet


def permission_problem(labels: Labels, offer: Offer | None, bound: int, at: int) -> str:
    """Say why a selected version isn't one that could be, in a word; nothing where it is."""
    problem = problem_of(None if offer is None else (at, offer[1]), 0, at)
    if problem or offer is None:
        return problem
    return "" if labels.fit(offer[0], bound) else OUTSIDE


def bounds_of(state: State, labels: Labels, place: Place) -> int:
    """Check the bounds that a selection records; return their number."""
    bounds: dict[str, list[str]] = state.filter
    scopes, sensitivities = bounds.get("scopes", []), bounds.get("sensitivity", [])
    if bounds.get("tenant") != [state.tenant] or bounds.get("owner") != [state.owner]:
        place.report(PERMITTED, "bounds of its own tenant and owner", "others, or none")
    if not scopes or tuple(sensitivities) not in _CEILINGS:
        place.report(PERMITTED, "scopes and the sensitivities under a ceiling", "others, or none")
        return _NOT_COMPARED
    return labels.of_bounds(scopes, sensitivities)


def check_ranks(state: State, place: Place) -> None:
    """Check how the entries were found."""
    if hasattr(state, RANKS_ARE_SOUND):
        return
    has_space = state.embedding_tuple is not None
    for one in state.entries:
        dense, sparse = one.dense_rank, one.sparse_rank
        if (
            (dense is None or (type(dense) is int and dense >= 1 and has_space))
            and (sparse is None or (type(sparse) is int and sparse >= 1))
            and isfinite(one.score)
            and (one.dense_score is None or (has_space and isfinite(one.dense_score)))
            and (one.sparse_score is None or isfinite(one.sparse_score))
        ):
            continue
        place.report(FOUND, "ranks from 1, finite scores, and a space for vectors", "another")
        return
