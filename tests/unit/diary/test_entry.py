"""Entries as they are stored, and who they concern."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.diary.entry import NAMES_MAX, Entry, merged
from barnabas.model.errors import InvalidValueError
from barnabas.model.note import Note


def entry(number: int = 1, at_ms: int = 1_000, **data: object) -> Entry:
    return Entry(
        number, 7, at_ms, "reject.produce", "client:app@::1", "corrupt", data, last_ms=at_ms
    )


def test_what_is_encoded_can_be_decoded() -> None:
    one = entry(reason="tägliche «Zahl»\n", size=5, names=["a"])
    assert Entry.decode(one.encode(), 1) == one
    one.repeat(Note("reject.produce", one.subject, "corrupt", {"size": 6}), 2_000)
    again = Entry.decode(one.encode(), 1)
    assert again == one
    assert (again.count, again.last_ms) == (2, 2_000)


def test_what_json_does_not_know_is_text() -> None:
    found = Entry.decode(entry(id=UUID(int=1)).encode())
    assert found.data == {"id": "00000000-0000-0000-0000-000000000001"}


@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"7", b"{}", b'{"at":1,"data":[]}', b"null", b"[" * 10]
)
def test_what_no_broker_wrote(value: bytes) -> None:
    with pytest.raises(InvalidValueError, match="not an entry"):
        Entry.decode(value)


def test_names_are_collected_up_to_a_limit() -> None:
    one = entry(names=["0"])
    for number in range(NAMES_MAX + 5):
        one.repeat(Note("e", "s", "c", {"names": [str(number)]}), 1_000)
    assert one.data["names"] == [str(number) for number in range(NAMES_MAX)]


@pytest.mark.parametrize(
    ("client", "is_it"),
    [
        ("10.0.0.7", True),
        ("app", True),
        ("User:alice", True),
        ("alice", True),
        ("app@10.0.0.7", True),
        ("10.0.0.70", False),
        ("bob", False),
    ],
)
def test_who_it_concerns(client: str, is_it: bool) -> None:
    data = {"host": "10.0.0.7", "client_id": "app", "principal": "User:alice"}
    one = Entry(1, 7, 0, "reject.produce", "client:app@10.0.0.7", "corrupt", data)
    assert one.concerns(client) is is_it


def test_entries_come_in_the_order_of_their_times() -> None:
    early, late = entry(2, 1_000), entry(1, 3_000)
    assert merged({b"late": late, b"early": early}) == [early, late]
