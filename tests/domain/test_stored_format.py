import inspect

import pytest
from eventsourcing.domain import Aggregate, AggregateEvent
from eventsourcing.utils import get_topic

from remembrancer.domain.errors import UnknownTopicError
from remembrancer.domain.stored_format import AGGREGATES, EVENTS, require_known

LIBRARYS_OWN = {"Event", "Created"}  # never stored: ours have names and topics of their own


def _events_of(aggregate: type[Aggregate]) -> list[type[AggregateEvent]]:
    return [
        value
        for name, value in vars(aggregate).items()
        if inspect.isclass(value)
        and issubclass(value, AggregateEvent)
        and name not in LIBRARYS_OWN
    ]


@pytest.mark.parametrize("aggregate", AGGREGATES.values())
def test_every_event_of_an_aggregate_is_listed(aggregate: type[Aggregate]) -> None:
    listed = {cls for topic, cls in EVENTS.items() if topic.startswith(f"{get_topic(aggregate)}.")}

    assert set(_events_of(aggregate)) == listed


def test_every_aggregate_of_the_domain_is_listed() -> None:
    """Importing the list imports all of them, or a store couldn't be read."""
    ours = {
        cls for cls in Aggregate.__subclasses__() if cls.__module__.startswith("remembrancer.")
    }

    assert ours == set(AGGREGATES.values())


def test_topics_are_stated_not_derived_from_class_names() -> None:
    for topic, cls in (EVENTS | AGGREGATES).items():
        assert get_topic(cls) == topic
        assert topic.startswith("remembrancer.")


def test_listed_topics_pass() -> None:
    for topic in EVENTS:
        for aggregate in [None, *AGGREGATES]:
            require_known(topic, aggregate)


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "os:system",
        "remembrancer.memory_entry",
        "remembrancer.memory_entry.event",
        "remembrancer.memory_entry.entry_remembered ",
        "remembrancer.domain.entry:MemoryEntry.EntryRemembered",
        "eventsourcing.domain:Aggregate.Created",
    ],
)
def test_no_other_topic_passes(topic: str) -> None:
    with pytest.raises(UnknownTopicError) as refusal:
        require_known(topic)

    assert refusal.value.topic == topic


@pytest.mark.parametrize(
    "aggregate", ["", "os:system", "remembrancer.memory_entry.entry_remembered"]
)
def test_no_other_aggregate_begins(aggregate: str) -> None:
    with pytest.raises(UnknownTopicError):
        require_known("remembrancer.memory_entry.entry_remembered", aggregate)


def test_lists_hold_nothing_twice() -> None:
    assert len(set(EVENTS.values())) == len(EVENTS)
    assert not set(EVENTS) & set(AGGREGATES)
