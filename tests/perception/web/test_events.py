"""Calls from the browser are made in order, and what is dragged does not pile up."""

import asyncio
from types import SimpleNamespace

import pytest

from perception.visualize.web.events import Events

pytestmark = pytest.mark.untyped  # the server is a stand-in for its clients


class Notes:
    """Server whose only client keeps what it is told."""

    def __init__(self):
        self.told = []
        client = SimpleNamespace(add_notification=lambda *words, **_: self.told.append(words))
        self.get_clients = lambda: {0: client}


def sent(callback, *numbers, client=0):
    for number in numbers:
        asyncio.run(callback(SimpleNamespace(client_id=client, number=number)))


def test_calls_are_made_in_order_and_only_for_clients():
    events, seen = Events(Notes()), []
    first, second = (events.on(lambda event, name=name: seen.append((name, event.number))) for name in "ab")
    sent(first, 1, 2)
    sent(second, 3)
    sent(first, 4)
    sent(second, 5, client=None)  # a change that the server made
    events.run(0.05)
    assert seen == [("a", 1), ("a", 2), ("b", 3), ("a", 4)]


def test_only_the_latest_of_what_is_dragged_is_seen():
    events, seen = Events(Notes()), []
    dragged = events.on_latest(lambda event: seen.append(event.number))
    sent(dragged, *range(50))
    events.run(0.02)
    assert seen == [49]
    sent(dragged, 50)
    events.run(0.02)
    assert seen == [49, 50]


def test_slow_calls_do_not_hold_the_page():
    import time

    events, seen = Events(Notes()), []
    slow = events.on(lambda event: (time.sleep(0.03), seen.append(event.number)))
    sent(slow, *range(10))
    events.run(0.0)
    assert seen == [0]  # at least one, and no more than the time allows
    events.run(0.05)
    assert seen in ([0, 1, 2], [0, 1])


def test_an_error_of_the_user_is_told_and_the_page_goes_on():
    notes, seen = Notes(), []
    events = Events(notes)

    def fail(_):
        raise ValueError("no such\nfile")

    sent(events.on(fail), 1)
    sent(events.on(lambda _: [][0]), 1)  # an error of the program
    sent(events.on(lambda event: seen.append(event.number)), 2)
    events.run(0.05)
    program = ("an error of the program", "IndexError('list index out of range')")
    assert notes.told == [("not possible", "no such file"), program] and seen == [2]
