"""What entries are about."""

from __future__ import annotations

from barnabas.diary import subjects


def test_subjects() -> None:
    assert subjects.partition("orders", 3) == "orders-3"
    assert subjects.topic("orders") == "topic:orders"
    assert subjects.group("billing") == "group:billing"
    assert subjects.broker(2) == "broker:2"
    assert subjects.client("app", "10.0.0.7") == "client:app@10.0.0.7"
    assert subjects.client(None, "10.0.0.7") == subjects.client("", "10.0.0.7") == "client:10.0.0.7"
    assert subjects.transaction("t") == "transaction:t"
    assert subjects.configured("topic orders") == "topic:orders"


def test_names_that_clients_choose_are_cut() -> None:
    assert len(subjects.group("g" * 10_000)) < 300
