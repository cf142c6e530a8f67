"""Rules of one entry's stream, and what it says of vault and indexes."""

from array import array
from typing import Final

from remembrancer.application.audit.facts import Facts, microseconds
from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.natural_key import dashed, entry_stream_key, version_key
from remembrancer.application.audit.reading import State, is_digest
from remembrancer.domain.entry import MemoryEntry, reason_code
from remembrancer.domain.parsed import TEXT_BYTES_MAX
from remembrancer.domain.sensitivity import Sensitivity

LIFE = Invariant(
    name="entry-life",
    sentence="An entry is remembered once, corrected any number of times and erased at most once; "
    "nothing follows its erasure, and every event is about the same entry.",
    source="design 4, MemoryEntry",
)
LABELS = Invariant(
    name="entry-labels",
    sentence="Each version has a keyed digest, a length within the bound and a known sensitivity.",
    source="design 4; adr/0003",
)
NO_WORDS = Invariant(
    name="no-words-in-log",
    sentence="A reason in the log is a code; words are never there.",
    source="design 4 and 10; adr/0003",
)
INVARIANTS: Final = (LIFE, LABELS, NO_WORDS)

REMEMBERED: Final = MemoryEntry.EntryRemembered.TOPIC
CORRECTED: Final = MemoryEntry.EntryCorrected.TOPIC
ERASED: Final = MemoryEntry.EntryErased.TOPIC

_SENSITIVITIES = frozenset(level.value for level in Sensitivity)


class EntryRules:
    """Folds one entry."""

    __slots__ = (
        *(
            "_place",
            "_facts",
            "_entry",
            "_spelt",
            "_version",
            "_latest",
            "_recorded_at",
            "_erased",
        ),
        *("_originals", "_places"),
    )

    def __init__(self, place: Place, facts: Facts) -> None:
        self._place = place
        self._facts = facts
        self._entry = ""
        self._spelt = ""
        self._version = 0
        """Of the text: events that made one."""
        self._latest = ""
        """The record of the current version, but for its end."""
        self._erased = False
        self._originals: array[int] | None = None
        self._places: array[int] | None = None
        """What was said of versions that are superseded; none was as yet."""

    def begin(self, topic: str, state: State) -> bytes | None:
        """Take in the first event; return the id its stream must have, None if it begins none."""
        if topic != REMEMBERED:
            self._place.report(LIFE, "the stream begins with EntryRemembered", topic)
            return None
        place = self._place
        place.tenant, place.owner = state.tenant, state.owner
        self._entry = state.entry_id
        self._spelt = dashed(self._entry)
        self._take_version(state)
        return entry_stream_key(state.tenant, self._spelt)

    def take(self, topic: str, state: State) -> None:
        """Take in a later event."""
        if self._erased:
            self._place.report(LIFE, "nothing follows the erasure", topic)
        if getattr(state, "entry_id", None) != self._entry:
            self._place.report(LIFE, f"an event about entry {self._entry}", "another entry's")
        if topic == CORRECTED:
            self._supersede(microseconds(state.timestamp))
            self._take_version(state)
            self._check_reason(state)
        elif topic == ERASED:
            self._check_reason(state)
            if not self._erased:
                self._erase()
        else:
            self._place.report(LIFE, "EntryCorrected or EntryErased", topic)

    def finish(self) -> None:
        """The stream has ended."""
        if not self._erased and self._version:
            facts, place = self._facts, self._place
            facts.originals.expect(f"{self._latest}\x1fNone")
            facts.places.expect(f"{self._entry}\x1f{place.tenant}\x1f{place.owner}")

    def _take_version(self, state: State) -> None:
        self._version += 1
        place = self._place
        digest, length = state.digest, state.length
        if (
            not is_digest(digest)
            or not 1 <= length <= TEXT_BYTES_MAX
            or state.sensitivity not in _SENSITIVITIES
        ):
            place.report(LABELS, "digest, length and sensitivity within their bounds", "another")
        recorded_at = microseconds(state.timestamp)
        self._latest = (
            f"{self._entry}\x1f{self._version}\x1f{place.tenant}\x1f{place.owner}"
            f"\x1f{state.scope}\x1f{state.kind}\x1f{state.sensitivity}\x1f{digest}"
            f"\x1f{length}\x1f{recorded_at}"
        )
        self._facts.versions.offer(
            (place.tenant or "", self._spelt, self._version, digest),
            self._facts.labels.of_version(state.scope, state.sensitivity),
            place.position,
        )

    def _supersede(self, at: int) -> None:
        if self._erased:
            return
        if self._originals is None or self._places is None:
            self._originals, self._places = array("q"), array("q")
        facts = self._facts
        self._originals.append(facts.originals.expect(f"{self._latest}\x1f{at}"))
        key = version_key(bytes.fromhex(self._entry), self._version).hex()
        place = self._place
        self._places.append(facts.places.expect(f"{key}\x1f{place.tenant}\x1f{place.owner}"))

    def _erase(self) -> None:
        self._erased = True
        facts = self._facts
        for number in self._originals or ():
            facts.originals.withdraw(number)
        for number in self._places or ():
            facts.places.withdraw(number)
        facts.erased.expect(f"{self._entry}\x1f{self._place.tenant}")

    def _check_reason(self, state: State) -> None:
        if reason_code(state.reason) != state.reason:
            self._place.report(NO_WORDS, "a code", "words")
