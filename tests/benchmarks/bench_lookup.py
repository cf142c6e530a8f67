"""What a lookup of a prepared vector costs, against the least that its key must cost."""

import hashlib
from collections.abc import Callable
from functools import partial

import msgspec.json
from tests.benchmarks.row import Row, interleaved

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.application.cache_contexts import Surface
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.contracts.admission_examples import a_configuration
from remembrancer.domain.bounds import CACHE_VECTORS_MAX
from remembrancer.domain.query_key import KEY_BYTES
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

BOUND = 1.6
LOOKUPS = 200
"""In one measurement: a clock's own reading must not count."""
ROUNDS = 101
SECRET = bytes(range(32))
DIMENSIONS = 384

CONFIGURATION = a_configuration(dimensions=DIMENSIONS)
CONTEXT = RecallContext(
    policy_version="policy-2030-01",
    retrieval_policy_version="retrieval-7",
    surface="ide",
    task_digest="5" * 64,
    sensitivity_floor=Sensitivity.INTERNAL,
)
PREPARED = RecallQuery(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    scopes=("project/alpha", "project/beta", "personal"),
    read_ceiling=Sensitivity.INTERNAL,
    question="Which constraint did we agree on for the invoice service's retries?",
    subjects=("invoice service",),
)
MISSING = PREPARED.model_copy(update={"question": PREPARED.question[:-1] + "."})


def measure() -> list[Row]:
    """Look up what is there and what isn't, in a full cache.

    The context is equal to the prepared one, not the same object: hosts make one for each turn.
    """
    lookup = _full()
    context = CONTEXT.model_copy()
    assert lookup.lookup(PREPARED, context) is not None
    assert lookup.lookup(MISSING, context) is None
    rows = []
    for name, query in (("hit", PREPARED), ("miss", MISSING)):
        ours, floor = interleaved(
            [_many(partial(lookup.lookup, query, context)), _many(_floor(query))], rounds=ROUNDS
        )
        rows.append(
            Row(
                what=f"lookup of a prepared vector: {name}",
                ours=ours / LOOKUPS,
                baseline=floor / LOOKUPS,
                against="canonical JSON (msgspec), BLAKE2b and a dict",
                at_most=BOUND,
            )
        )
    return rows


def _full() -> PreparedQueries:
    clock = SystemClock()
    lookup = PreparedQueries(clock=clock, secret=SECRET, configuration=CONFIGURATION)
    surface = Surface(tenant="acme", owner="ana", surface=CONTEXT.surface)
    vectors = lookup.bound(surface, CONTEXT, 1)
    others = [
        PREPARED.model_copy(update={"question": f"question {number}"})
        for number in range(CACHE_VECTORS_MAX - 1)
    ]
    vectors.insert(
        [(lookup.keys.key(one, CONTEXT), [0.5] * DIMENSIONS) for one in (*others, PREPARED)],
        generation=1,
        now_s=clock.monotonic(),
    )
    return lookup


def _floor(query: RecallQuery) -> Callable[[], object]:
    """The key alone: everything that it covers is at hand as plain data."""
    covered = {
        **CONFIGURATION.key_conditions,
        "context": CONTEXT.model_dump(mode="json"),
        "query": query.model_dump(mode="json"),
    }
    encode = msgspec.json.Encoder(order="deterministic").encode
    kept = {bytes([number]) * KEY_BYTES: None for number in range(CACHE_VECTORS_MAX)}

    def look() -> object:
        key = hashlib.blake2b(encode(covered), key=SECRET, digest_size=KEY_BYTES).digest()
        return kept.get(key)

    return look


def _many(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(LOOKUPS):
            work()

    return run
