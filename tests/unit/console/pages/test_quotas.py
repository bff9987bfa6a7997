"""Quotas, with what brokers measure of the clients that they concern."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.admin.quotas import QuotaUsage
from barnabas.console.pages.quotas import _command, _rows

ADA = {"user": "ada <i>"}


def test_a_quota_is_set_seen_changed_from_its_row_and_removed(site: Site) -> None:
    preview = site.post("/quotas/set", ADA | {"key": "producer_byte_rate", "value": "1000000"})
    command = "barnabas quotas set producer_byte_rate=1000000 --user &#39;ada &lt;i&gt;&#39;"
    assert command in preview.text
    assert site.get("/quotas.json").json()["rows"] == []
    done = site.do("/quotas/set", **ADA, key="producer_byte_rate", value="1000000")
    assert "changed" in text_of(done.text)
    [row] = site.get("/quotas.json").json()["rows"]
    assert (row["entity"], row["key"], row["limit"]) == ("user ada <i>", "producer_byte_rate", 1e6)
    page = site.page("/quotas")
    assert "ada <i>" not in page
    link = "/quotas?user=ada+%3Ci%3E&amp;key=producer_byte_rate&amp;value=1e%2B06#change"
    assert f'href="{link}"' in page
    filled = site.page("/quotas?user=ada+%3Ci%3E&key=producer_byte_rate&value=5")
    assert '<details id="change" open>' in filled
    assert 'name="user" value="ada &lt;i&gt;"' in filled
    fields = {"default-client-id": "yes", "key": "request_percentage", "value": "50"}
    site.do("/quotas/set", **fields)
    entities = [each["entity"] for each in site.get("/quotas.json").json()["rows"]]
    # Those that the default concerns are measured by their names, such as the console itself.
    assert {"client-id (default)", "user ada <i>"} <= set(entities)
    site.do("/quotas/set", **(fields | {"value": ""}))
    site.do("/quotas/set", **ADA, key="producer_byte_rate", value="")
    assert site.get("/quotas.json").json()["rows"] == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"key": "producer_byte_rate", "value": "1"}, "needs a user, a client id or an address"),
        ({"user": "a", "key": "producer_byte_rate", "value": "fast"}, "is not a number"),
        ({"user": "a", "key": "producer_byte_rate", "value": "inf"}, "is not a number"),
    ],
)
def test_an_incomplete_quota_is_rejected(site: Site, fields: dict[str, str], text: str) -> None:
    answer = site.post("/quotas/set", fields)
    assert answer.status_code == 400
    assert text in text_of(answer.text)


def test_each_broker_that_measures_a_quota_has_a_row() -> None:
    limits = {
        ("user ada", "producer_byte_rate"): ({"user": "ada"}, 100.0),
        ("user bob", "producer_byte_rate"): ({"user": "bob"}, 10.0),
    }
    measured = {
        1: [QuotaUsage({"user": "ada"}, "producer_byte_rate", 50.0, 100.0, 0.0)],
        2: [
            QuotaUsage({"user": "ada"}, "producer_byte_rate", 120.0, 100.0, 7.5),
            QuotaUsage({"client-id": "x"}, "consumer_byte_rate", 3.0, None, 0.0),
            QuotaUsage({"client-id": "y"}, "consumer_byte_rate", 3.0, 12.0, 0.0),
        ],
    }
    rows = _rows(limits, measured)
    shown = [(row["entity"], row["broker"], row["share"], row["level"]) for row in rows]
    assert shown == [
        ("user ada", 1, "50%", ""),
        ("user ada", 2, "120%", "warn"),
        ("client-id y", 2, "25%", ""),
        ("user bob", None, "", ""),
    ]


def test_its_command_is_whole() -> None:
    entity = {"user": "ada b", "client-id": None}
    assert (
        _command(entity, "producer_byte_rate", "5")
        == "barnabas quotas set producer_byte_rate=5 --user 'ada b' --default-client-id"
    )
    assert _command({"ip": "::1"}, "connection_creation_rate", "") == (
        "barnabas quotas remove connection_creation_rate --ip ::1"
    )
