"""What hosts do in a simulated world, and what must be true of the answer to each.

One undertaking is one call to the library.  Blocking ones run to their end at once; what another
process may do in their middle is a fault of its own (``MEANWHILE``).
"""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation import vocabulary
from tests.simulation.host import Host
from tests.simulation.story import Deed
from tests.simulation.trouble import CURRENT, Fault, KilledError, Undertaking
from tests.simulation.virtual_time import chance_of

from remembrancer.contracts.token_counter import WordCounter
from remembrancer.domain import ContextItem
from remembrancer.domain.errors import (
    BudgetTooSmallError,
    EntryErasedError,
    IdempotencyConflictError,
    InvalidInputError,
    NotAdmittedError,
    ReindexStoppedError,
    RemembrancerError,
    SettingsError,
    StaleStreamError,
    UnknownPackError,
    UnknownSelectionError,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.recall import Recalled, RecallQuery
from remembrancer.domain.spend_errors import ChargeNotLoweredError, ReservationNotUnknownError

if TYPE_CHECKING:
    from tests.simulation.world import World

_Result = TypeVar("_Result")
Refusals = tuple[type[RemembrancerError], ...]

MEANWHILE = (Deed.CORRECT, Deed.ERASE, Deed.REMEMBER, Deed.SELECT, Deed.BUILD, Deed.ERASE_SESSION)
"""What another process may do in the middle of something."""


class Deeds:
    """The blocking ones."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._does: dict[Deed, Callable[[Host, Undertaking], object]] = {
            Deed.REMEMBER: self._remember,
            Deed.CORRECT: self._correct,
            Deed.ERASE: self._erase,
            Deed.ERASE_SESSION: self._erase_session,
            Deed.ERASE_OWNER: self._erase_owner,
            Deed.RECALL: self._recall,
            Deed.SELECT: self._select,
            Deed.BUILD: self._build,
            Deed.REPLAY: self._replay,
            Deed.REINDEX: self._reindex,
            Deed.RECONCILE: self._reconcile,
        }

    def do(self, deed: Deed, host: Host, chance: random.Random, name: str, **how: bool) -> None:
        """Let a host do something, to its end."""
        undertaking = Undertaking(name=f"{name} {deed}", host=host, chance=chance)
        undertaking.touched = self._world.store_is_troubled
        undertaking.withdrawals = self._world.withdrawals
        if how.get("troubled"):
            undertaking.draw_faults()
            undertaking.meanwhile = lambda: self._meanwhile(host, chance, name)
        self._world.under_way.append(undertaking)
        token = CURRENT.set(undertaking)
        try:
            self._does[deed](host, undertaking)
        except KilledError:
            host.kill()
        finally:
            CURRENT.reset(token)
            self._world.under_way.remove(undertaking)

    def _meanwhile(self, host: Host, chance: random.Random, name: str) -> None:
        others = [one for one in self._world.hosts if one is not host and not one.dead]
        if others:
            self._world.disturb()
            self.do(chance.choice(MEANWHILE), chance.choice(others), chance, f"{name}+")

    def _tried(
        self, undertaking: Undertaking, call: Callable[[], _Result], *refusals: type[Exception]
    ) -> _Result | None:
        """Return what a call returns; an error that nobody caused is against the rules."""
        try:
            result = call()
        except refusals as refusal:
            self._world.note(f"  {undertaking.name}: refused, {type(refusal).__name__}")
            self._world.seen[type(refusal).__name__] += 1
            return None
        except RemembrancerError as error:
            self._failed(undertaking, error)
            return None
        except RuntimeError as error:
            if not undertaking.suffered[Fault.BUG]:
                self._world.complain("no_strange_errors", f"{undertaking.name}: {error!r}")
            self._failed(undertaking, error)
            return None
        except Exception as error:  # noqa: BLE001  # any other is a finding
            self._world.complain("no_strange_errors", f"{undertaking.name}: {error!r}")
            return None
        self._world.note(f"  {undertaking.name}: done")
        self._world.seen[undertaking.name.split()[-1]] += 1
        return result

    def _failed(self, undertaking: Undertaking, error: Exception) -> None:
        self._world.note(f"  {undertaking.name}: failed, {type(error).__name__}")
        if undertaking.undisturbed:
            self._world.complain("no_errors_of_its_own", f"{undertaking.name}: {error!r}")

    # -- Entries -----------------------------------------------------------

    def _remember(self, host: Host, undertaking: Undertaking) -> None:
        chance = undertaking.chance
        tenant, owner = chance.choice(vocabulary.OWNERS)
        entries = [
            vocabulary.entry_by(chance, tenant, owner, f"{undertaking.name.split()[0]}.{number}")
            for number in range(chance.choice((1, 1, 2, 5)))
        ]
        ids = self._tried(
            undertaking,
            lambda: host.memory.remember_many(entries),
            IdempotencyConflictError,
            EntryErasedError,
        )
        for id_ in ids or ():
            self._acknowledge(id_, 1)
            self._world.known.append(id_)

    def _correct(self, host: Host, undertaking: Undertaking) -> None:
        entry_id = self._any_entry(undertaking.chance)
        if entry_id is None:
            return
        chance = undertaking.chance
        sensitivity = chance.choice(list(vocabulary.Sensitivity))
        changes: dict[str, Any] = {
            "text": vocabulary.text_by(chance, sensitivity, undertaking.name.split()[0]),
            "sensitivity": sensitivity,
        }
        if chance.random() < 0.3:
            changes["scope"] = chance.choice(vocabulary.SCOPES)
        version = self._tried(
            undertaking,
            lambda: host.memory.correct(entry_id, reason="outdated", **changes),
            EntryErasedError,
        )
        if version is not None:
            self._acknowledge(entry_id, version)

    def _erase(self, host: Host, undertaking: Undertaking) -> None:
        entry_id = self._any_entry(undertaking.chance)
        if entry_id is None:
            return
        erasure = self._tried(undertaking, lambda: host.memory.erase(entry_id, reason="asked"))
        if erasure is not None:
            self._world.soundness.catch_up()
            if str(entry_id) not in self._world.soundness.erased:
                self._world.complain("acknowledged_is_there", f"{entry_id} isn't erased")

    def _erase_session(self, host: Host, undertaking: Undertaking) -> None:
        session = undertaking.chance.choice(vocabulary.SESSIONS)
        self._tried(undertaking, lambda: host.memory.erase_session(session, tenant="acme"))

    def _erase_owner(self, host: Host, undertaking: Undertaking) -> None:
        tenant, owner = undertaking.chance.choice(vocabulary.OWNERS)
        self._tried(
            undertaking,
            lambda: host.memory.erase_owner(tenant=tenant, owner=owner, reason="asked"),
        )

    def _acknowledge(self, entry_id: EntryId, version: int) -> None:
        told = self._world.soundness.acknowledged
        told[entry_id] = max(version, told.get(entry_id, 0))

    def _any_entry(self, chance: random.Random) -> EntryId | None:
        chosen = [id_ for ids in self._world.selections.values() for id_ in ids]
        if chosen and chance.random() < 0.4:
            return vocabulary.entry_id(chance.choice(chosen))
        return chance.choice(self._world.known) if self._world.known else None

    # -- Questions ---------------------------------------------------------

    def _recall(self, host: Host, undertaking: Undertaking) -> None:
        query, context = self._asked(undertaking)
        live = host.is_live(query, context)
        found = self._tried(undertaking, lambda: host.memory.recall(query, context))
        if found is None:
            return
        self._check_recalled(undertaking, query, found)
        if live and undertaking.undisturbed and found.mode_reason == "query_not_prepared":
            self._world.complain("prepared_is_found", f"{undertaking.name}: {query!r}")

    def _check_recalled(
        self, undertaking: Undertaking, query: RecallQuery, found: Recalled
    ) -> None:
        ids = [one.entry_id for one in found.entries]
        if len(set(ids)) != len(ids) or len(ids) > query.limit:
            self._world.complain("recalled_once", f"{undertaking.name}: {ids}")
        if undertaking.suffered:
            return  # Something else may have been written since.
        current = self._world.store.vault.current(ids)
        for one in found.entries:
            now = current.get(one.entry_id)
            if now is None or (now.text, now.version) != (one.text, one.version):
                self._world.complain("recalled_is_current", f"{undertaking.name}: {one.entry_id}")
                continue
            covered = any(
                now.scope == scope or now.scope.startswith(f"{scope}/") for scope in query.scopes
            )
            mine = (now.tenant, now.owner) == (query.tenant, query.owner)
            if not (covered and mine and now.sensitivity <= query.read_ceiling):
                self._world.complain("recalled_is_permitted", f"{undertaking.name}: {now!r}")

    def _asked(self, undertaking: Undertaking) -> tuple[RecallQuery, Any]:
        chance = undertaking.chance
        asked, prepared = self._world.asked, self._world.prepared
        if prepared and chance.random() < 0.5:
            query, context = chance.choice(prepared[-6:])
            if chance.random() < 0.2:  # It must not be found in another context.
                context = context.model_copy(update={"task_digest": "t3"})
            return query, context
        if asked and chance.random() < 0.5:
            return chance.choice(asked[-12:])
        tenant, owner = chance.choice(vocabulary.OWNERS)
        context = vocabulary.context_by(chance, chance.choice(vocabulary.SURFACES))
        return vocabulary.query_by(chance, tenant, owner), context

    def _select(self, host: Host, undertaking: Undertaking) -> None:
        query, context = self._asked(undertaking)
        session, stage = self._stage(undertaking.chance)
        selection = self._tried(
            undertaking,
            lambda: host.memory.select(session, stage, query, context),
            InvalidInputError,
        )
        if selection is not None and selection.owner != query.owner:
            self._world.complain("selected_is_own", f"{undertaking.name}: {selection.owner}")

    def _build(self, host: Host, undertaking: Undertaking) -> None:
        query, context = self._asked(undertaking)
        chance = undertaking.chance
        session, stage = self._stage(chance)
        item = ContextItem(layer=0, id="rules", text=f"Rule {chance.randrange(3)}.", required=True)
        budget = chance.choice((20, 150, 800, 800))
        pack = self._tried(
            undertaking,
            lambda: host.memory.build_pack(
                session, stage, query, context, items=[item], token_budget=budget
            ),
            BudgetTooSmallError,
            InvalidInputError,
            *((StaleStreamError,) if undertaking.suffered else ()),
        )
        if pack is None:
            return
        if pack.tokens > budget or WordCounter().count(pack.text) != pack.tokens:
            self._world.complain("pack_within_budget", f"{undertaking.name}: {pack.tokens}")
        key = (query.tenant, session, stage, pack.number)
        if self._world.packs.setdefault(key, (pack.text, pack.digest)) != (pack.text, pack.digest):
            before = self._world.packs[key]
            if not undertaking.suffered and before[1] == pack.digest:
                self._world.complain("same_pack_same_bytes", f"{undertaking.name}")

    def _replay(self, host: Host, undertaking: Undertaking) -> None:
        if self._world.packs:
            key = undertaking.chance.choice(list(self._world.packs))
            self.replay(host, undertaking, key)

    def replay(self, host: Host, undertaking: Undertaking, key: tuple[str, str, str, int]) -> None:
        """Replay a pack: the same bytes, or what differs is named; and nothing is written."""
        tenant, session, stage, number = key
        before = self._world.store.log.position()
        again = self._tried(
            undertaking,
            lambda: host.memory.replay(
                session,
                stage,
                tenant=tenant,
                principal="agent-7",
                scopes=("project", "private"),
                read_ceiling=vocabulary.Sensitivity.CONFIDENTIAL,
                pack_number=number,
            ),
            *((UnknownSelectionError, UnknownPackError) if undertaking.suffered else ()),
        )
        if again is None or undertaking.suffered:
            return
        if self._world.store.log.position() != before:
            self._world.complain("replay_writes_nothing", undertaking.name)
        gone = {one.id for one in again.differences}
        if not gone and (again.text, again.digest) != self._world.packs[key]:
            self._world.complain("replay_is_the_same", f"{undertaking.name}: {key}")
        if any(one.reason == "altered" for one in again.differences):
            self._world.complain("replay_is_the_same", f"{undertaking.name}: altered")
        self._world.soundness.catch_up()
        for id_ in again.included:
            if id_ in self._world.soundness.erased and id_ not in gone:
                self._world.complain("erased_is_gone", f"{undertaking.name}: {id_}")
            self._check_permitted(undertaking, id_, gone)

    def _check_permitted(
        self, undertaking: Undertaking, id_: str, gone: Sequence[str] | set[str]
    ) -> None:
        if id_ in gone or id_ not in self._world.soundness.entries:
            return
        head = self._world.store.vault.current([vocabulary.entry_id(id_)])
        for one in head.values():
            if one.sensitivity > vocabulary.Sensitivity.CONFIDENTIAL:
                self._world.complain("replayed_is_permitted", f"{undertaking.name}: {id_}")

    def _stage(self, chance: random.Random) -> tuple[str, str]:
        return chance.choice(vocabulary.SESSIONS), chance.choice(vocabulary.STAGES)

    # -- Upkeep ------------------------------------------------------------

    def _reindex(self, host: Host, undertaking: Undertaking) -> None:
        def reindex() -> object:
            if undertaking.chance.random() < 0.5:
                return host.memory.reindex_missing()
            return host.memory.reindex(words=undertaking.chance.random() < 0.3, drop_retired=True)

        self._tried(undertaking, reindex, ReindexStoppedError, SettingsError, NotAdmittedError)

    def _reconcile(self, host: Host, undertaking: Undertaking) -> None:
        unknown = [
            id_
            for id_, one in self._world.books.reservations.items()
            if one.state in {"unknown", "reconciled", "settled"}
        ]
        if not unknown:
            return
        chance = undertaking.chance
        id_ = chance.choice(unknown)
        one = self._world.books.reservations[id_]
        stated = chance.randrange(one.reserved + 1)
        charged = chance.randrange(one.reserved + 2)
        document = (
            f'{{"reservation_id": "{id_}", "stated_quanta": {stated},'
            f' "provider_statement": "line {chance.randrange(9)}"}}'
        )
        self._tried(
            undertaking,
            lambda: host.memory._container.reconcile()(
                id_,
                tenant=one.owner[0],
                owner=one.owner[1],
                charged_quanta=charged,
                document=document.encode(),
                by="operator",
            ),
            ChargeNotLoweredError,
            ReservationNotUnknownError,
        )


def undertaking_for_calm(host: Host, name: str) -> Undertaking:
    """Return an undertaking in which nothing goes wrong."""
    return Undertaking(name=name, host=host, chance=chance_of(name))
