"""Rules about what leaves, and about what is believed of an answer, broken on purpose."""

from tests.simulation.mutation import Mutation

_PAID = "application.paid_request"
_PREPARE = "application.prepare_queries"
_ANSWER = "domain.provider_answer"

EGRESS = (
    Mutation(
        "send without a reservation",
        _PAID,
        "PaidRequest.__call__",
        "refused = await self._reserve(order, attempt)\n",
        "refused = None\n",
    ),
    Mutation(
        "send although refused",
        _PAID,
        "PaidRequest.__call__",
        "return refused or await",
        "return await",
    ),
    Mutation(
        "settle never",
        _PAID,
        "PaidRequest._spend",
        "settle(self._ledger, attempt, answer.usage_tokens)",
        "self._ledger.receipt(attempt.tenant, attempt.owner, attempt.reservation_id)",
    ),
    Mutation(
        "give up without a word",
        _PAID,
        "PaidRequest._give_up",
        "for _ in range(_INTERRUPTIONS_MAX):",
        "for _ in range(0):",
    ),
    Mutation(
        "reserve for nobody",
        "application.reservations",
        "reserve",
        "        if attempt.is_abandoned:\n            return None\n",
        "",
    ),
    Mutation(
        "reserve without a key",
        _PAID,
        "PaidRequest._reserved",
        "if code is not None:",
        "if False:",
    ),
    Mutation(
        "see no obstacle",
        _PREPARE,
        "PrepareQueries._order",
        "obstacle=lambda: self._obstacle(run.surface, configuration, generation),",
        "obstacle=lambda: None,",
    ),
    Mutation(
        "ignore another configuration",
        _PREPARE,
        "PrepareQueries._admitted",
        "self._prepared.is_withdrawn or admitted.digest != self._prepared.configuration_digest",
        "False",
    ),
    Mutation(
        "look not while it is out",
        "application.watched",
        "_first_code",
        "interval_s / CHECKS_PER_INTERVAL",
        "1_000",
    ),
    Mutation(
        "a minute to answer",
        "domain.bounds",
        "DEADLINE_S",
        "= 10",
        "= 60",
    ),
    Mutation(
        "pay for what is in the cache",
        _PREPARE,
        "PrepareQueries._skip_known",
        "is not None:",
        "is not None and False:",
    ),
    Mutation(
        "pay twice for one question",
        _PREPARE,
        "PrepareQueries._skip_known",
        "elif key in taken:",
        "elif False:",
    ),
    Mutation(
        "send what is confidential",
        _PREPARE,
        "PrepareQueries._withheld",
        "floor = context.sensitivity_floor",
        "floor = type(context.sensitivity_floor).PUBLIC",
    ),
    Mutation(
        "send credentials",
        _PREPARE,
        "PrepareQueries._withheld",
        "if verdict.reason is not None:",
        "if False:",
    ),
    Mutation(
        "send another owner's question",
        "domain.eligibility",
        "ineligibility",
        "(query.tenant, query.owner) != (tenant, owner)",
        "query.tenant != tenant",
    ),
    Mutation(
        "send any length",
        "domain.eligibility",
        "ineligibility",
        "> QUERY_TEXT_BYTES_MAX",
        "> QUERY_TEXT_BYTES_MAX * 9",
    ),
    Mutation(
        "index what may not leave",
        "application.remote_indexing",
        "RemoteIndexing._may_leave",
        "declared=document.sensitivity,",
        "declared=type(document.sensitivity).PUBLIC,",
    ),
)
"""What leaves, when, and how often."""

ANSWERS = (
    Mutation(
        "believe the lower of two usages",
        _ANSWER,
        "_usage_tokens",
        "max(stated)",
        "min(stated)",
    ),
    Mutation(
        "believe any usage",
        _ANSWER,
        "_usage_tokens",
        "if highest > most:",
        "if False:",
    ),
    Mutation(
        "believe any model",
        _ANSWER,
        "_parsed",
        'if answer.get("model") != model:',
        "if False:",
    ),
    Mutation(
        "take vectors as they come",
        _ANSWER,
        "_vectors",
        'index = item.get("index")',
        "index = len(by_index)",
    ),
    Mutation(
        "take true for a number",
        _ANSWER,
        "_vector",
        "if any(type(number) is not float and type(number) is not int for number in numbers):",
        "if False:",
    ),
)
"""What is believed of a provider."""
