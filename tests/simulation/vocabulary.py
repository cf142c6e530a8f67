"""What is said in a simulated world: owners, questions, texts, and the configurations."""

import random
from typing import Any
from uuid import UUID

from tests.application.laboratory import MODEL, URL, admission_of, configuration

from remembrancer.domain import NewEntry, RecallContext, RecallQuery, Sensitivity
from remembrancer.domain.identity import EntryId
from remembrancer.domain.recall import RecallKind
from remembrancer.domain.release import AdmittedConfiguration

DIMENSIONS = 8
OWNERS = (("acme", "ana"), ("acme", "ben"), ("acme-corp", "ana"))
SURFACES = ("cli", "chat")
SCOPES = ("project/alpha", "project/beta", "private")
SESSIONS = ("s1", "s2", "s3", "s4", "s5")
STAGES = ("plan", "act")
TOPICS = ("invoice", "ledger", "backup", "retries", "storage", "release")
SECRET_WORD = "restrictedbird"  # noqa: S105  # a canary, not a secret
"""In every text that may not leave, and in no other."""
CREDENTIAL = "AK" + "IA" + "QWERTYUIOP234567"
"""What the guards must find; written so that no scanner takes this file for a leak."""
PRICES = ("0.37", "1.9", "12")
"""USD per million tokens: none of them a whole number of quanta a token but the last."""


def admitted_by(chance: random.Random) -> AdmittedConfiguration:
    """Return an admitted configuration: prices, ceilings and the model's revision differ."""
    ceilings = {
        "quanta_per_day": chance.choice((120, 400, 3_000, 40_000)),
        "requests_per_day": chance.choice((4, 9, 25)),
    }
    pricing = {
        "usd_per_million_tokens": chance.choice(PRICES),
        "input_overhead_tokens": chance.choice((0, 2)),
        "request_overhead_tokens": chance.choice((0, 3)),
    }
    embedding = {
        "provider": "example",
        "model": MODEL,
        "model_revision": chance.choice(("1", "1", "2")),
        "dimensions": DIMENSIONS,
        "input_preparation": "plain@1",
    }
    return admission_of(
        configuration(ceilings=ceilings, pricing=pricing, embedding_tuple=embedding)
    )


def context_by(chance: random.Random, surface: str) -> RecallContext:
    """Return the circumstances of questions; mostly the same."""
    floor = Sensitivity.INTERNAL
    if chance.random() < 0.05:
        floor = Sensitivity.CONFIDENTIAL
    return RecallContext(
        policy_version="p1",
        retrieval_policy_version="r1",
        surface=surface,
        task_digest=chance.choice(("t1", "t1", "t1", "t2")),
        sensitivity_floor=floor,
    )


def query_by(chance: random.Random, tenant: str, owner: str) -> RecallQuery:
    """Return a question to an owner's memory; one in some is of a sort that may not leave."""
    question = f"Which rule of the {chance.choice(TOPICS)} binds {tenant} {owner}?"
    changes: dict[str, Any] = {}
    odd = chance.random()
    if odd < 0.03:
        question = f"Where is {CREDENTIAL} of the ledger used?"
    elif odd < 0.05:
        question += "é" * 2_100
    elif odd < 0.07:
        question = ""
    elif odd < 0.09:
        changes["kind"] = RecallKind.PEOPLE
        changes["subjects"] = ("Ana",)
    elif odd < 0.11:
        owner = "somebody-else"
    elif odd < 0.16:
        changes["subjects"] = ("Ana",)
    elif odd < 0.2:
        changes["limit"] = 2
    elif odd < 0.24:
        changes["scopes"] = ("project/alpha",)
    elif odd < 0.28:
        changes["read_ceiling"] = Sensitivity.PUBLIC
    plain: dict[str, Any] = {
        "tenant": tenant,
        "owner": owner,
        "principal": "agent-7",
        "scopes": ("project", "private"),
        "read_ceiling": Sensitivity.CONFIDENTIAL,
        "question": question,
        "limit": 5,
    }
    return RecallQuery(**plain | changes)


def entry_by(chance: random.Random, tenant: str, owner: str, name: str) -> NewEntry:
    """Return something to remember."""
    sensitivity = chance.choice(list(Sensitivity))
    return NewEntry(
        tenant=tenant,
        owner=owner,
        scope=chance.choice(SCOPES),
        text=text_by(chance, sensitivity, name),
        kind=chance.choice(("note", "core", "decision")),
        sensitivity=sensitivity,
        subjects=chance.choice(((), (), ("Ana",), ("Ben", "Ana"))),
        idempotency_key=chance.choice((None, name, f"key{chance.randrange(6)}")),
    )


def text_by(chance: random.Random, sensitivity: Sensitivity, name: str) -> str:
    """Return a text of its own; one that may not leave says so."""
    secret = f" {SECRET_WORD}" if sensitivity > Sensitivity.INTERNAL else ""
    return f"common {chance.choice(TOPICS)} {chance.choice(TOPICS)} text{name}{secret}"


def entry_id(text: str) -> EntryId:
    """Return the id that a text names."""
    return EntryId(UUID(text))


__all__ = ["MODEL", "URL", "Sensitivity"]
