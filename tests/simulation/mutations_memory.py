"""Rules about caches, entries, selections, packs and the store, broken on purpose."""

from tests.simulation.mutation import Mutation

_PREPARE = "application.prepare_queries"

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
        "Quote._permits",
        "and self._policy.permits(access, one.header)",
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
        "record_all",
        "        earlier = latest[key]",
        "        continue\n        earlier = latest[key]",
    ),
)
"""Entries, selections, packs and the store."""
