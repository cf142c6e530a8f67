"""Entries as an agent writes them, made up: some sixty words a text, common words commonest.

The common words are those of Python's own reference, some six thousand, in its order of frequency;
the rare ones, such as names, are made of syllables.
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from pydoc_data.topics import topics

from remembrancer.domain import NewEntry, RecallContext, RecallQuery, Sensitivity

WORDS = (40, 80)
"""Of a text, from and to."""
VOCABULARY = 30_000
SCOPES = ("project/alpha", "project/beta", "project/gamma")
SENSITIVITIES = (Sensitivity.PUBLIC, Sensitivity.INTERNAL, Sensitivity.RESTRICTED)
TENANT = "acme"

_SYLLABLES = [first + second for first in "bcdfglmnprstv" for second in ("a", "e", "i", "o", "un")]


class Corpus:
    """The same texts for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - not a secret: a workload
        self.words = self._vocabulary()
        """Commonest first."""
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))

    def entries(self, count: int, *, owners: int) -> Iterator[NewEntry]:
        """Yield entries of so many owners, in turn."""
        for number in range(count):
            yield NewEntry(
                tenant=TENANT,
                owner=f"owner{number % owners}",
                scope=SCOPES[number // owners % len(SCOPES)],
                text=self.text(),
                kind="note",
                sensitivity=SENSITIVITIES[number // owners % 11 % len(SENSITIVITIES)],
                subjects=("storage",) if number % 5 == 0 else (),
                metadata={"path": f"notes/{number % 97}.md"},
            )

    def text(self) -> str:
        """Return some sentences."""
        length = self._chance.randint(*WORDS)
        chosen = self._chance.choices(self.words, cum_weights=self._weights, k=length)
        sentences = (chosen[start : start + 12] for start in range(0, length, 12))
        return " ".join(" ".join(one).capitalize() + "." for one in sentences)

    def question(self) -> str:
        """Return four words that tell something."""
        return " ".join(self._chance.sample(self.words[60:2_000], 4))

    def _vocabulary(self) -> list[str]:
        counted = Counter(re.findall(r"[a-z]+", " ".join(topics.values()).lower()))
        words = dict.fromkeys(word for word, _ in counted.most_common())
        while len(words) < VOCABULARY:
            words["".join(self._chance.choices(_SYLLABLES, k=self._chance.randint(2, 4)))] = None
        return list(words)


def a_query(question: str, owner: str = "owner3") -> RecallQuery:
    """Return what an agent asks on an owner's behalf."""
    return RecallQuery(
        tenant=TENANT,
        owner=owner,
        principal="agent-7",
        scopes=("project",),
        read_ceiling=Sensitivity.INTERNAL,
        question=question,
        limit=10,
    )


def a_context() -> RecallContext:
    """Return the circumstances of a question."""
    return RecallContext(
        policy_version="p1",
        retrieval_policy_version="r1",
        surface="cli",
        task_digest="t1",
        sensitivity_floor=Sensitivity.INTERNAL,
    )
