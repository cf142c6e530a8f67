"""The rules that are broken on purpose, one each: what the simulation must be able to see.

Every one of them would cost money, leak a text, lose something, or show what was taken back.
"""

from tests.simulation.mutation import Mutation

_LEDGER = "domain.reservation_ledger"
_RULES = "domain.reservation"
_FACTS = "domain.reservation_event"
_PAID = "application.paid_request"
_PREPARE = "application.prepare_queries"
_ANSWER = "domain.provider_answer"

SPEND = (
    Mutation(
        "settle on today's day",
        _LEDGER,
        "ReservationLedger.settle",
        "known.day,\n            at,",
        "utc_day(at),\n            at,",
    ),
    Mutation(
        "lose on today's day",
        _LEDGER,
        "ReservationLedger._record_unknown",
        "known.day,",
        "utc_day(at),",
    ),
    Mutation(
        "reconcile on today's day",
        _LEDGER,
        "ReservationLedger.reconcile",
        "known.day,\n",
        "utc_day(at),\n",
    ),
    Mutation(
        "round down",
        "domain.money",
        "_ceiling",
        "-(-amount.numerator // amount.denominator)",
        "amount.numerator // amount.denominator",
    ),
    Mutation(
        "release on timeout",
        _FACTS,
        "ReservationBecameUnknown.day_change",
        "return DayTotals()",
        "return DayTotals(quanta=-self.charged_quanta)",
    ),
    Mutation(
        "skip the expiry",
        _LEDGER,
        "ReservationLedger.admit",
        "        self.expire(at=at)\n",
        "",
    ),
    Mutation(
        "expire a second early",
        _LEDGER,
        "ReservationLedger.expire",
        "one.expires_at <= at]",
        "one.expires_at - timedelta(seconds=1) <= at]",
    ),
    Mutation(
        "two pending queries",
        "domain.bounds",
        "PENDING_QUERIES_MAX",
        "= 1",
        "= 2",
    ),
    Mutation(
        "one request more than the ceiling",
        _RULES,
        "require_room",
        "used.requests + 1 >",
        "used.requests >",
    ),
    Mutation(
        "money ceiling without the new charge",
        _RULES,
        "require_room",
        "used.quanta + request.charge_quanta >",
        "used.quanta >",
    ),
    Mutation(
        "settle after the lease",
        _LEDGER,
        "ReservationLedger.settle",
        " or known.expires_at <= at",
        "",
    ),
    Mutation(
        "settle what is unknown",
        _LEDGER,
        "ReservationLedger.settle",
        "known.state is ReservationState.UNKNOWN or ",
        "",
    ),
    Mutation(
        "follow a clock that is set back",
        _LEDGER,
        "ReservationLedger.not_before",
        "max(as_utc(at), self.modified_on)",
        "as_utc(at)",
    ),
    Mutation(
        "a lease of an hour",
        "domain.bounds",
        "LEASE_S",
        "= 15",
        "= 3_600",
    ),
    Mutation(
        "count settled room twice",
        _FACTS,
        "ReservationSettled.day_change",
        "quanta=self.charged_quanta - self.reserved_quanta",
        "quanta=-self.reserved_quanta",
    ),
    Mutation(
        "reconcile below what is stated",
        _LEDGER,
        "ReservationLedger.reconcile",
        "least_quanta=evidence.stated_quanta",
        "least_quanta=0",
    ),
    Mutation(
        "reserve no overheads",
        "domain.money",
        "Pricing.tokens_bound",
        "+ len(input_bytes) * self.input_overhead_tokens",
        "",
    ),
    Mutation(
        "forget that a settlement was told",
        "adapters.memory.ledger_repository",
        "MemoryLedgerRepository._follow",
        "elif before and after:",
        "elif before and after and after.charged_quanta == before.reservation.charged_quanta:",
    ),
)
"""Rules of the ledger."""

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

CACHES = (
    Mutation(
        "cache before the record",
        _PREPARE,
        "PrepareQueries._prepare",
        "reason = await self._kept_out(run, order, generation)",
        "reason = None",
    ),
    Mutation(
        "record for an older generation",
        "domain.cache_context",
        "CacheContext.require_current",
        "generation != self.generation or ",
        "",
    ),
    Mutation(
        "a new context in the old generation",
        "domain.cache_context",
        "CacheContext._next",
        "self.generation + 1",
        "self.generation",
    ),
    Mutation(
        "keep vectors for an hour",
        "domain.bounds",
        "CACHE_LIFETIME_S",
        "= 300",
        "= 3_600",
    ),
    Mutation(
        "look up in any context",
        "application.prepared_queries",
        "PreparedQueries.lookup",
        "if known is None or (known is not context and known != context):",
        "if known is None:",
    ),
    Mutation(
        "a key without the read ceiling",
        "domain.query_key",
        "query_json",
        'f\',"read_ceiling":"{query.read_ceiling._value_}"\'',
        "''",
    ),
    Mutation(
        "a key without the limit",
        "domain.query_key",
        "query_json",
        "f',\"limit\":{query.limit}'",
        "''",
    ),
    Mutation(
        "look up after the withdrawal",
        "application.prepared_queries",
        "PreparedQueries.withdraw",
        """            self._withdrawn = True
            for cache in self._caches.values():
                cache.vectors.clear()
            surfaces = [Surface(tenant=a, owner=b, surface=c) for a, b, c in self._caches]
            self._caches.clear()
""",
        "            surfaces: list[Surface] = []\n",
    ),
)
"""When a vector may be used."""

MEMORY = (
    Mutation(
        "erase and leave the index",
        "application.erase",
        "Erase._erase",
        "self._index.drop(current, self._vault.erase(entry_id))",
        "self._vault.erase(entry_id)",
    ),
    Mutation(
        "erase and leave the text",
        "application.erase",
        "Erase._erase",
        "self._vault.erase(entry_id))",
        "(1,))",
    ),
    Mutation(
        "correct without an event",
        "application.correct",
        "Correct._record",
        "append(self._log, entry)",
        "entry.collect_events()",
    ),
    Mutation(
        "replay what was moved out of reach",
        "application.quote",
        "Quote._quotation",
        "or not self._policy.permits(access, one.header)",
        "",
    ),
    Mutation(
        "adopt another owner's selection",
        "application.select_entries",
        "SelectEntries.committed",
        "if known.selection.owner != query.owner:",
        "if False:",
    ),
    Mutation(
        "a pack over its budget",
        "application.build_pack",
        "BuildPack._assemble",
        "token_budget=token_budget,\n                count=",
        "token_budget=token_budget * 2,\n                count=",
    ),
    Mutation(
        "chain nothing",
        "adapters.memory.event_log",
        "MemoryRecorder._insert",
        "stream[-1].own if stream else GENESIS",
        "GENESIS",
    ),
    Mutation(
        "keep half of a failed transaction",
        "adapters.memory.transactions",
        "MemoryTransactions._end",
        "for undo in reversed(undos):",
        "for undo in undos[:0]:",
    ),
    Mutation(
        "settle in the file and tell nobody",
        "adapters.sqlite.spend_receipts",
        "record",
        "    earlier = find(",
        "    return\n    earlier = find(",
    ),
)
"""Entries, selections, packs and the store."""

MUTATIONS = (*SPEND, *EGRESS, *ANSWERS, *CACHES, *MEMORY)
