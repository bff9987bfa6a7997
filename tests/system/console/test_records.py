"""Records in a real Chromium: found, searched for, followed, sent, taken away as files."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pyarrow.parquet as parquet
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.system.console import contents
from tests.system.console.asking import Make, span, wait_for
from tests.system.console.chromium import Tab

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("console"),
]

ORDERS = f"/topics/{contents.ORDERS}/records"


def read(options: dict[str, Any], topic: str, count: int, partition: int = 0) -> list[Any]:
    """Return the first records of a partition, as a consumer reads them."""
    consumer = Consumer({**options, "group.id": "readers", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Any] = []
        wait_for(
            lambda: found.extend(consumer.consume(count, 0.1)) or len(found) >= count,
            f"{count} records of {topic}",
        )
        return found
    finally:
        consumer.close()


def rows(tab: Tab) -> list[str]:
    """Return the rows of the list on the page."""
    return tab.page.locator("tbody tr").all_inner_texts()


def test_records_are_listed_and_filtered(tab: Tab) -> None:
    tab.open(ORDERS)
    assert len(rows(tab)) == 50
    tab.field("Filter").fill("value.status = 'paid' and value.total > 200")
    tab.field("Rows").select_option("500")
    tab.press("Show")
    tab.see("That is all")
    wanted = [json.loads(contents.order(number)[1]) for number in range(300)]
    paid = {each["id"] for each in wanted if each["status"] == "paid" and each["total"] > 200}
    assert {int(found) for row in rows(tab) for found in re.findall(r'"id": ?(\d+)', row)} == paid
    tab.open(f"{ORDERS}?from=key&key=c-007&limit=500")
    tab.see("That is all")
    keys = [contents.order(number)[0] for number in range(300)]
    assert len(rows(tab)) == keys.count(b"c-007") > 0
    tab.field("Filter").fill("value.total >")
    tab.expected = {400}
    tab.press("Show")
    assert tab.page.get_by_role("alert").count() == 1
    tab.expected = set()
    tab.shoot("filter-wrong-light")


def test_a_search_shows_its_progress_goes_on_and_finds(tab: Tab, admin: AdminClient) -> None:
    count = span(admin, contents.HISTORY)[1]
    tab.open(f"/topics/{contents.HISTORY}/records?q=value.n+%3D+{count - 1}")  # in the newest batch
    tab.see(f'"n":{count - 1}')
    # The oldest record is found last: the page has to go on by itself.
    tab.open(f"/topics/{contents.HISTORY}/records?q=value.event+%3D+%22oldest%22&limit=20")
    tab.see('"event":"oldest"', "Searched all of it", "That is all")


def test_a_search_is_stopped(tab: Tab, admin: AdminClient) -> None:
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    # No text that has to be in the bytes: each record is decoded, so that it takes its time.
    tab.open(f"/topics/{contents.HISTORY}/records?q=not+value.n+%3E%3D+0&limit=500")
    stop = tab.page.get_by_role("link", name="Stop")
    stop.wait_for()
    tab.see("offsets are not searched yet")
    tab.shoot("search-light")
    stop.click()
    tab.see("Stopped.")
    sent = len(asked)
    tab.page.wait_for_timeout(1_200)  # longer than one slice of a search
    assert len(asked) == sent, asked[sent:]
    tab.page.get_by_role("link", name="Go on from here").click()
    tab.see("Searched")


def test_new_records_are_shown_as_they_come(
    tab: Tab, make: Make, cluster_options: dict[str, Any]
) -> None:
    name = make("followed")
    tab.open(f"/topics/{name}/records")
    with tab.page.expect_event("load"):
        tab.page.get_by_role("link", name="Live").click()
    tab.see("The last 100 rows")
    for number in range(3):
        contents.produce(cluster_options, name, [(b"k", b"came-%d" % number, [])])
        tab.see(f"came-{number}")
    contents.produce(cluster_options, name, [(b"k", contents.SCRIPT.encode(), [])])
    tab.see(contents.SCRIPT)
    assert len(rows(tab)) == 4


def test_a_page_follows_what_it_shows(tab: Tab, admin: AdminClient, make: Make) -> None:
    name = make("followed-group", records=10)
    contents.commit(admin, "followed", name, [0], 2)
    tab.open("/groups/followed")
    tab.see("8 offsets behind")
    contents.commit(admin, "followed", name, [0], 9)
    tab.see("1 offset behind")


def test_a_record_is_produced(tab: Tab, make: Make, cluster_options: dict[str, Any]) -> None:
    name = make("produced-to", 2)
    tab.open(f"/topics/{name}/records")
    with tab.page.expect_event("load"):
        tab.page.get_by_role("link", name="Produce a record").click()
    tab.field("Partition; empty: the key decides").fill("1")
    tab.field("Key", tab.page.locator("fieldset").nth(0)).fill("größe")
    tab.field("Value", tab.page.locator("fieldset").nth(1)).fill(contents.SCRIPT)
    tab.page.locator("#headers").fill("source: console\nscript: " + contents.SCRIPT)
    tab.press("Preview")
    tab.see("Nothing has been sent yet", contents.SCRIPT)
    tab.press("Send 1 record")
    tab.see("1 record to")
    [record] = read(cluster_options, name, 1, 1)
    assert (record.key(), record.value()) == ("größe".encode(), contents.SCRIPT.encode())
    assert record.headers() == [
        ("source", b"console"), ("script", contents.SCRIPT.encode()),
    ]  # fmt: skip


def test_records_are_sent_again_edited_too(
    tab: Tab, make: Make, cluster_options: dict[str, Any]
) -> None:
    name, target = make("resent-from", records=5), make("resent-to")
    tab.open(f"/topics/{name}/records?from=oldest")
    for number in (1, 3):
        tab.page.get_by_label(f"Select partition 0, offset {number}", exact=True).check()
    tab.page.get_by_label("Topic to send to").fill(target)
    tab.page.locator("#added").fill("again: yes")
    tab.press("Preview the ticked ones")
    tab.see("2 records to send", "value-1", "value-3")
    tab.press("Send 2 records")
    tab.see("2 records to")
    found = read(cluster_options, target, 2)
    assert [each.value() for each in found] == [b"value-1", b"value-3"]
    assert found[0].headers() == [("n", b"1"), ("again", b"yes")]
    tab.open(f"/topics/{name}/0/4")
    with tab.page.expect_event("load"):
        tab.page.get_by_role("link", name="Send again, edited").click()
    tab.page.locator("#target").fill(target)
    tab.field("Value", tab.page.locator("fieldset").nth(1)).fill("edited")
    tab.press("Preview")
    tab.press("Send 1 record")
    record = read(cluster_options, target, 3)[-1]
    assert (record.key(), record.value()) == (b"key-4", b"edited")


def test_every_byte_survives_being_sent_again(
    tab: Tab, make: Make, cluster_options: dict[str, Any]
) -> None:
    target = make("hostile-copy", config={"max.message.bytes": "2000000"})
    tab.open(f"/topics/{contents.HOSTILE}/records?from=oldest")
    tab.page.get_by_label("Topic to send to").fill(target)
    tab.press("Preview all that are found (if none is ticked)")
    tab.see(f"{len(contents.PAYLOADS)} records to send")
    tab.press(f"Send {len(contents.PAYLOADS)} records")
    tab.see("records to")
    found = read(cluster_options, target, len(contents.PAYLOADS))
    assert [each.value() for each in found] == list(contents.PAYLOADS.values())


def test_lines_are_imported(tab: Tab, make: Make, cluster_options: dict[str, Any]) -> None:
    name = make("imported-to")
    tab.open(f"/topics/{name}/records/import")
    lines = [{"key": "a", "value": "one", "headers": [["h", "1"]]}, {"key": None, "value": "two"}]
    tab.field("Lines of JSON").fill("\n".join(map(json.dumps, lines)))
    tab.press("Preview")
    tab.see("2 records to send")
    tab.press("Send 2 records")
    found = read(cluster_options, name, 2)
    assert [(each.key(), each.value()) for each in found] == [(b"a", b"one"), (None, b"two")]
    tab.open(f"/topics/{name}/records/import")
    tab.field("Lines of JSON").fill('{"key": ')
    tab.expected = {400}
    tab.press("Preview")
    assert tab.page.get_by_role("alert").count() == 1
    tab.expected = set()


def test_what_is_found_is_downloaded(tab: Tab) -> None:
    tab.open(f"{ORDERS}?q=value.status+%3D+%27paid%27&limit=500")
    tab.see("That is all")
    wanted = {
        (key.decode(), value.decode())
        for key, value, _ in map(contents.order, range(300))
        if b'"paid"' in value
    }

    def download(title: str) -> bytes:
        with tab.page.expect_download() as started:
            tab.page.get_by_role("link", name=title, exact=True).click()
        return started.value.path().read_bytes()

    lines = [json.loads(line) for line in download("JSON lines").splitlines()]
    assert {(each["key"], each["value"]) for each in lines} == wanted
    table = list(csv.DictReader(io.StringIO(download("CSV").decode())))
    assert {(each["key"], each["value"]) for each in table} == wanted
    columns = parquet.read_table(io.BytesIO(download("Parquet"))).to_pydict()
    pairs = zip(columns["key"], columns["value"], strict=True)
    assert {(_text(key), _text(value)) for key, value in pairs} == wanted


def test_a_schema_is_used(tab: Tab, make: Make, cluster_options: dict[str, Any]) -> None:
    name = make("in-avro")
    contents.produce(cluster_options, name, [(None, b"\x0epayment\x54", [])])
    tab.open(f"/topics/{name}/records/schemas")
    schema = {
        "type": "record", "name": "Event",
        "fields": [{"name": "kind", "type": "string"}, {"name": "amount", "type": "int"}],
    }  # fmt: skip
    tab.page.locator("#schema").fill(json.dumps(schema))
    tab.press("Use it")
    tab.see("Event")
    tab.open(f"/topics/{name}/records?vd=avro")
    tab.see('"amount": 42', "payment", "Avro")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value
