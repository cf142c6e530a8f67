"""Quotations: the committed version, if it may still be shown."""

from collections.abc import Sequence
from typing import Any

import pytest

from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.policy.default import DefaultAccessPolicy
from remembrancer.application.ports import Original
from remembrancer.application.ports.access_policy import Access
from remembrancer.application.quote import Quote
from remembrancer.contracts.originals import FIRST, SECOND, UNKNOWN, an_original
from remembrancer.domain import Sensitivity
from remembrancer.domain.fences import Quotation
from remembrancer.domain.l3_selection import CommittedText

ACCESS = Access(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    scopes=("project",),
    read_ceiling=Sensitivity.INTERNAL,
)


def _committed(original: Original) -> CommittedText:
    entry_id = original.entry_id
    return str(entry_id), entry_id, original.version, original.digest


def _quoted(
    kept: Sequence[Original], selected: Sequence[Original], access: Access = ACCESS
) -> list[Quotation]:
    vault = MemoryEntryVault(transactions=MemoryTransactions())
    vault.keep(kept)
    quote = Quote(vault=vault, policy=DefaultAccessPolicy())
    return quote([_committed(one) for one in selected], access)


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({}, ""),
        ({"path": "a.md"}, "a.md"),
        ({"path": "a.md", "heading": "Setup > Linux"}, "a.md#Setup > Linux"),
        ({"source": "mail", "path": "a.md"}, "mail"),
        ({"heading": "Setup"}, ""),
    ],
)
def test_a_quotation_says_where_it_comes_from(metadata: dict[str, str], source: str) -> None:
    original = an_original(metadata=metadata)

    [quotation] = _quoted([original], [original])

    assert (quotation.text, quotation.gone) == (original.text, None)
    assert quotation.source == source
    assert quotation.entry_id == str(original.entry_id)


def test_the_committed_version_is_quoted_not_the_current_one() -> None:
    old, new = an_original(), an_original(version=2)

    [quotation] = _quoted([old, new], [old])

    assert quotation.text == old.text
    assert quotation.version == 1


def test_order_is_that_of_the_selection() -> None:
    one, other = an_original(FIRST), an_original(SECOND)

    quotations = _quoted([one, other], [other, one])

    assert [one.text for one in quotations] == [other.text, one.text]


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"owner": "bob"}, "no longer permitted"),
        ({"tenant": "other"}, "no longer permitted"),
        ({"scope": "elsewhere"}, "no longer permitted"),
        ({"sensitivity": Sensitivity.RESTRICTED}, "no longer permitted"),
        ({"text": "another"}, "altered"),
    ],
    ids=str,
)
def test_what_is_not_as_it_was_is_not_quoted(changes: dict[str, Any], gone: str) -> None:
    selected = an_original()
    kept = selected._replace(**changes)

    [quotation] = _quoted([kept], [selected])

    assert (quotation.gone, quotation.text) == (gone, "")
    assert quotation.scope == quotation.source == ""


def test_todays_labels_decide_too() -> None:
    old = an_original()
    new = an_original(version=2, sensitivity=Sensitivity.RESTRICTED)

    [quotation] = _quoted([old, new], [old])

    assert quotation.gone == "no longer permitted"


def test_what_is_not_there_was_erased() -> None:
    [quotation] = _quoted([], [an_original(UNKNOWN)])

    assert quotation.gone == "erased"
