import copy
import importlib
import inspect
import pickle
import pkgutil
import re
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, get_type_hints
from uuid import UUID

import pytest

import remembrancer.domain
from remembrancer.domain import errors
from remembrancer.domain.errors import RemembrancerError, Retry

_SAMPLES: dict[Any, Any] = {
    str: "some text",
    int: 7,
    bool: True,
    UUID: UUID(int=7),
    datetime: datetime(2030, 1, 1, tzinfo=UTC),
    tuple[str, ...]: ("rules", "task"),
}


def _modules() -> list[ModuleType]:
    return [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(remembrancer.domain.__path__, "remembrancer.domain.")
        if module.name.endswith("errors")
    ]


def _all_errors(
    base: type[RemembrancerError] = RemembrancerError,
) -> list[type[RemembrancerError]]:
    """Return every error class of the domain, of all its modules named ``...errors``."""
    _modules()
    found = [
        cls for cls in base.__subclasses__() if cls.__module__.startswith("remembrancer.domain")
    ]
    return found + [below for cls in found for below in _all_errors(cls)]


def _made(cls: type[RemembrancerError]) -> RemembrancerError:
    hints = get_type_hints(cls.__init__)
    told: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in hints:
            kind = getattr(hints[name], "__supertype__", hints[name])  # of a NewType
            told[parameter.kind is parameter.KEYWORD_ONLY][name] = _SAMPLES[kind]
    return cls(*told[False].values(), **told[True])


CONCRETE = [cls for cls in _all_errors() if not cls.__subclasses__()]


@pytest.mark.parametrize("cls", CONCRETE)
def test_error_survives_the_way_to_another_process(cls: type[RemembrancerError]) -> None:
    error = _made(cls)

    revived = pickle.loads(pickle.dumps(error))  # noqa: S301  # pickled on this line

    assert type(revived) is cls
    assert str(revived) == str(error) != ""
    assert vars(revived) == vars(error)
    assert revived.retry is error.retry


@pytest.mark.parametrize("cls", CONCRETE)
def test_error_can_be_copied(cls: type[RemembrancerError]) -> None:
    error = _made(cls)

    copied = copy.copy(error)

    assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("cls", CONCRETE)
def test_what_the_error_was_told_can_be_read_from_it(cls: type[RemembrancerError]) -> None:
    error = _made(cls)

    told = {
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind in {parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    }
    assert told <= vars(error).keys()


def test_names_end_in_error() -> None:
    """A bare past participle is an event."""
    assert all(cls.__name__.endswith("Error") for cls in _all_errors())


def test_only_what_may_pass_is_worth_trying_again() -> None:
    worth = {cls.__name__: cls.retry for cls in _all_errors() if cls.__module__ == errors.__name__}

    assert {name: retry for name, retry in worth.items() if retry is not Retry.NEVER} == {
        "ReindexStoppedError": Retry.LATER,
        "IndexUnfitError": Retry.LATER,
        "StaleStreamError": Retry.RELOAD,
        "StoreUnavailableError": Retry.LATER,
        "OutcomeUnknownError": Retry.RELOAD,
        "StoreFullError": Retry.LATER,
    }


def test_trees_in_the_docstrings_are_the_tree() -> None:
    """A module that continues the tree draws its branch from the class it hangs on."""
    drawn: dict[str, str] = {}
    for module in _modules():
        above: list[tuple[int, str]] = []
        for branch, name in re.findall(
            r"^([ │├└─]*)(\w+Error)", module.__doc__ or "", flags=re.MULTILINE
        ):
            above = [(depth, other) for depth, other in above if depth < len(branch)]
            if above:
                drawn[name] = above[-1][1]
            above.append((len(branch), name))

    assert drawn == {cls.__name__: cls.__mro__[1].__name__ for cls in _all_errors()}


def test_names_of_a_thousand_required_items_fit_a_message() -> None:
    error = errors.BudgetTooSmallError(
        item_ids=tuple(f"rule-{number}" for number in range(1000)),
        needed_tokens=5000,
        budget_tokens=10,
    )

    assert "rule-19 and 980 more need 5000 tokens" in str(error)
    assert len(error.item_ids) == 1000


def test_topic_of_a_stranger_is_shown_in_part_only() -> None:
    error = errors.UnknownTopicError("x" * 10_000)

    assert len(str(error)) < 400
