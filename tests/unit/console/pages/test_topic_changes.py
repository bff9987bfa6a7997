"""What is done to topics: previews change nothing, confirmations do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.console.site import Site, confirmation, text_of


def offsets(site: Site, topic: str) -> list[tuple[int, int]]:
    """Return first and end offset of each partition, by number."""
    rows = site.get(f"/topics/{topic}/partitions.json").json()["rows"]
    return [(row["start"], row["end"]) for row in sorted(rows, key=lambda row: row["number"])]


def option(site: Site, topic: str, name: str) -> tuple[str, str]:
    """Return an option's value and its source."""
    for row in site.get(f"/topics/{topic}/configs.json").json()["rows"]:
        if row["name"] == name:
            return row["value"], row["source"]
    raise AssertionError(name)


def test_an_option_is_changed_and_returned_to_its_default(site: Site, topic: str) -> None:
    fields = {"option": "retention.ms", "value": "5000", "operation": "set"}
    preview = site.post(f"/topics/{topic}/alter", fields)
    assert "retention.ms 604800000 5000" in text_of(preview.text)
    assert f"barnabas configs alter --topic {topic} --set retention.ms=5000" in preview.text
    assert option(site, topic, "retention.ms") == ("604800000", "default")
    assert site.send(*confirmation(preview.text)).status_code == 303
    assert option(site, topic, "retention.ms") == ("5000", "topic")
    site.do(f"/topics/{topic}/alter", option="retention.ms", value="", operation="delete")
    assert option(site, topic, "retention.ms") == ("604800000", "default")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("retention.ms", "soon", "retention.ms"), ("no.such", "1", "no option 'no.such'")],
)
def test_an_invalid_option_is_rejected_before_the_preview(
    site: Site, topic: str, name: str, value: str, text: str
) -> None:
    fields = {"option": name, "value": value, "operation": "set"}
    answer = site.post(f"/topics/{topic}/alter", fields)
    assert answer.status_code in (400, 409)
    assert text in text_of(answer.text)


def test_partitions_are_added_but_never_removed(site: Site, topic: str) -> None:
    site.do(f"/topics/{topic}/partitions", count="5")
    assert len(offsets(site, topic)) == 5
    answer = site.post(f"/topics/{topic}/partitions", {"count": "4"})
    assert answer.status_code == 409


def test_old_records_are_deleted_as_the_preview_said(site: Site, topic: str) -> None:
    site.produce(topic, *"abcdef")
    preview = site.post(f"/topics/{topic}/delete-records", {"before": "4", "partition": "0"})
    assert "0 0 4 4" in text_of(preview.text)
    assert offsets(site, topic) == [(0, 6), (0, 0)]
    done = site.send(*confirmation(preview.text))
    assert "its old records are deleted" in done.text
    assert offsets(site, topic) == [(4, 6), (0, 0)]
    site.do(f"/topics/{topic}/delete-records", before="end", partition="")
    assert offsets(site, topic) == [(6, 6), (0, 0)]
    for wrong in ("-2", "1.5", "x"):
        answer = site.post(f"/topics/{topic}/delete-records", {"before": wrong})
        assert answer.status_code == 400, wrong


def test_leaders_that_are_preferred_are_left(site: Site, topic: str) -> None:
    assert "leads already" in text_of(site.post(f"/topics/{topic}/elect").text)


def test_a_fork_has_the_same_records(site: Site, topic: str) -> None:
    site.produce(topic, *"abc")
    answer = site.do(f"/topics/{topic}/fork", name=f"{topic}-fork")
    assert answer.headers["location"] == f"/topics/{topic}-fork"
    assert offsets(site, f"{topic}-fork") == [(0, 3), (0, 0)]
    again = site.post(f"/topics/{topic}/fork", {"name": f"{topic}-fork"})
    assert again.status_code == 409


def test_a_topic_is_deleted_by_whoever_types_its_name(site: Site, topic: str) -> None:
    preview = site.post(f"/topics/{topic}/delete")
    path, fields = confirmation(preview.text)
    assert site.send(path, [*fields, ("name", "another")]).status_code == 400
    assert site.get(f"/topics/{topic}").status_code == 200
    assert "deleted" in site.send(path, [*fields, ("name", topic)]).text
    assert site.get(f"/topics/{topic}").status_code == 404


def test_changes_are_in_the_audit_log(
    site: Site, topic: str, lines: Callable[[str], list[dict[str, str]]]
) -> None:
    site.do(f"/topics/{topic}/partitions", count="3")
    found = [each for each in lines("console") if each["api"] == "CreatePartitions"]
    assert found[-1] | {"time": "", "count": 1} == {
        "time": "", "event": "console", "principal": "User:ANONYMOUS", "host": "127.0.0.1",
        "listener": "console", "client_id": "barnabas-console", "api": "CreatePartitions",
        "resource": topic, "broker": "0", "result": "NONE", "count": 1,
    }  # fmt: skip


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[dict[str, str]]]:
    """Return lines of the audit log, by their event."""
    import json
    import logging

    caplog.set_level(logging.INFO, "barnabas.audit")

    def read(event: str) -> list[dict[str, str]]:
        found = [
            json.loads(record.getMessage())
            for record in caplog.records
            if record.name == "barnabas.audit"
        ]
        return [each for each in found if each["event"] == event]

    return read
