"""Rules of one stage's selection and packs (seed L3; design 4.1), as far as the log tells."""

from typing import Any, Final

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.natural_key import stream_key
from remembrancer.application.audit.permitted import bounds_of, check_ranks
from remembrancer.application.audit.reading import State, is_digest
from remembrancer.domain.counted import counted
from remembrancer.domain.l3_selection import LEFT_OUT_MAX, L3Selection
from remembrancer.domain.recall import LeftOutReason, RecallKind, RecallMode

SELECTION_FIRST = Invariant(
    name="selection-before-pack",
    sentence="A stage's selection is committed once, before every pack; packs are numbered "
    "from 1.",
    source="seed L3, determinism contract; design 4.1",
)
SELECTED = Invariant(
    name="selection-is-sound",
    sentence="A selection names each entry once, at most as many as were asked for, by a known "
    "kind and mode, and says for known reasons what was left out.",
    source="design 4.1",
)
SELECTED_VERSIONS = Invariant(
    name="selected-was-remembered",
    sentence="Each selected version, with the digest that was committed, was remembered in the "
    "same tenant before it was selected.",
    source="seed L3; design 4.1",
)
WITHIN_SELECTED = Invariant(
    name="included-within-selected",
    sentence="Every selected entry is in the pack or left out of it for a known reason, once; "
    "included ones stand after the host's items, in committed order.",
    source="seed L3; design 4.1",
)
BUDGET = Invariant(
    name="pack-within-budget",
    sentence="A pack's tokens are within its budget, and it differs from the pack before it.",
    source="design 4.1",
)
INVARIANTS: Final = (SELECTION_FIRST, SELECTED, SELECTED_VERSIONS, WITHIN_SELECTED, BUDGET)

ENTRIES_SELECTED: Final = L3Selection.L3EntriesSelected.TOPIC
PACK_ASSEMBLED: Final = L3Selection.ContextPackAssembled.TOPIC

_KINDS = frozenset(kind.value for kind in RecallKind)
_MODES = frozenset(mode.value for mode in RecallMode)
_LEFT_OUT = frozenset(reason.value for reason in LeftOutReason)
_OMITTED = frozenset({*_LEFT_OUT, "altered"})
"""What a pack may say: also that a text wasn't the one that had been committed."""


class SelectionRules:
    """Folds one stage.  Keeps the selection: packs are judged by it."""

    __slots__ = ("_facts", "_ids", "_last_digest", "_place", "packs", "selection")

    def __init__(self, place: Place, facts: Facts) -> None:
        self._place = place
        self._facts = facts
        self.selection: State = {}
        self.packs = 0
        self._ids: list[str] = []
        """Selected entries in committed order."""
        self._last_digest = ""

    def begin(self, topic: str, state: State) -> bytes | None:
        """Take in the first event; return the id its stream must have, None if it begins none."""
        place = self._place
        if topic != ENTRIES_SELECTED:
            place.report(SELECTION_FIRST, "the stream begins with L3EntriesSelected", topic)
            return None
        place.tenant, place.owner = state.tenant, state.owner
        self.selection = state
        self._select(state)
        natural_key = (state.tenant, state.session, state.stage)
        key = stream_key("l3_selection", *natural_key)
        self._facts.selections.offer(
            (key.hex(), state.tenant, state.owner, state.session),
            place.position,
            place.position,
        )
        return key

    def take(self, topic: str, state: State) -> None:
        """Take in a later event."""
        if topic != PACK_ASSEMBLED:
            self._place.report(SELECTION_FIRST, "ContextPackAssembled", topic)
            return
        self.packs += 1
        self._assemble(state)

    def finish(self) -> None:
        """The stream has ended."""

    def _select(self, state: State) -> None:
        place, tenant = self._place, state.tenant
        wanted = [(tenant, one.entry_id, one.version, one.digest) for one in state.entries]
        self._ids = ids = [one[1] for one in wanted]
        facts = self._facts
        facts.versions.want_all(wanted, bounds_of(state, facts.labels, place), place.position)
        check_ranks(state, place)
        if len(set(ids)) != len(ids) or not len(ids) <= state.k:
            place.report(
                SELECTED,
                f"at most {counted(state.k, 'entry', 'entries')}, each once",
                counted(len(ids), "entry", "entries"),
            )
        if state.kind not in _KINDS or state.mode not in _MODES:
            place.report(SELECTED, "a known kind and mode", "another")
        self._check_left_out(state)

    def _check_left_out(self, state: State) -> None:
        runs: list[list[Any]] = state.left_out
        named = sum([ids.count(" ") + 1 for _, ids in runs])
        if not named <= LEFT_OUT_MAX or named > state.left_out_count:
            self._place.report(
                SELECTED,
                f"at most {LEFT_OUT_MAX} of what was left out, counted",
                f"{named} of {state.left_out_count}",
            )
        if not _LEFT_OUT.issuperset([reason for reason, _ in runs]):
            self._place.report(SELECTED, "known reasons for what was left out", "another")

    def _assemble(self, state: State) -> None:
        place = self._place
        if state.number != self.packs:
            place.report(SELECTION_FIRST, f"pack {self.packs}", f"pack {state.number}")
        if not 0 <= state.tokens <= state.token_budget:
            place.report(BUDGET, f"at most {state.token_budget} tokens", str(state.tokens))
        digest = state.digest
        if not is_digest(digest) or digest == self._last_digest:
            place.report(BUDGET, "a digest other than the last pack's", "the same, or none")
        self._last_digest = digest
        self._check_included(state.included, state.omitted)
        if self._facts.packs is not None:
            self._facts.packs(place, self.selection, state)

    def _check_included(self, included: list[str], omitted: list[list[str]]) -> None:
        left = dict(omitted)
        rest = [one for one in self._ids if one not in left]
        if (
            len(left) == len(omitted)
            and len({*left, *included}) == len(left) + len(included)
            and included[len(included) - len(rest) :] == rest
            and _OMITTED.issuperset(left.values())
        ):
            return
        self._report_included(included, omitted)

    def _report_included(self, included: list[str], omitted: list[list[str]]) -> None:
        """Say what is wrong with a pack of which something is."""
        place, selected = self._place, set(self._ids)
        quoted = [one for one in included if one in selected]
        shown = set(quoted)
        left = dict(omitted)
        if len(left) + len(included) != len({*left, *included}) or len(left) != len(omitted):
            place.report(WITHIN_SELECTED, "each id once, included or omitted", "one of them twice")
        if included[len(included) - len(quoted) :] != quoted or quoted != [
            one for one in self._ids if one in shown
        ]:
            place.report(
                WITHIN_SELECTED, "entries after the host's items, in committed order", "another"
            )
        missing = [one for one in self._ids if one not in left and one not in shown]
        if missing:
            place.report(
                WITHIN_SELECTED, "every selected entry included or omitted", f"not {missing[0]}"
            )
        if not _OMITTED.issuperset(left.values()):
            place.report(WITHIN_SELECTED, "known reasons for what was omitted", "another")
