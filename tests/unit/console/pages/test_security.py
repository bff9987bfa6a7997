"""Quotas and users; ACLs are tested with the log-in."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, text_of


def test_a_quota_is_set_seen_and_removed(site: Site) -> None:
    done = site.do("/quotas/set", user="ada <i>", key="producer_byte_rate", value="1000000")
    assert "changed" in text_of(done.text)
    [row] = site.get("/quotas.json").json()["rows"]
    assert (row["entity"], row["key"], row["limit"]) == ("user ada <i>", "producer_byte_rate", 1e6)
    assert "ada <i>" not in site.page("/quotas")
    fields = {"default-client-id": "yes", "key": "request_percentage", "value": "50"}
    site.do("/quotas/set", **fields)
    entities = [each["entity"] for each in site.get("/quotas.json").json()["rows"]]
    assert entities == ["client-id (default)", "user ada <i>"]
    site.do("/quotas/set", **(fields | {"value": ""}))
    site.do("/quotas/set", user="ada <i>", key="producer_byte_rate", value="")
    assert site.get("/quotas.json").json()["rows"] == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"key": "producer_byte_rate", "value": "1"}, "needs a user, a client id or an address"),
        ({"user": "a", "key": "producer_byte_rate", "value": "fast"}, "is not a number"),
    ],
)
def test_an_incomplete_quota_is_rejected(site: Site, fields: dict[str, str], text: str) -> None:
    answer = site.post("/quotas/set", fields)
    assert answer.status_code == 400
    assert text in text_of(answer.text)


def test_without_an_authorizer_there_are_no_rules(site: Site) -> None:
    page = text_of(site.page("/acls?principal=alice&operation=READ&type=TOPIC&name=x"))
    assert "no authorizer is configured" in page
    answer = site.post(
        "/acls/add",
        {
            "principal": "User:a",
            "operation": "READ",
            "type": "TOPIC",
            "name": "x",
            "confirmed": "yes",
        },
    )
    assert answer.status_code == 409


@pytest.mark.parametrize("field", ["principal", "operation", "type", "name"])
def test_an_incomplete_rule_is_rejected(site: Site, field: str) -> None:
    rule = {"principal": "User:a", "operation": "READ", "type": "TOPIC", "name": "x"}
    assert site.post("/acls/add", rule | {field: ""}).status_code == 400


def test_a_user_needs_a_name_and_a_password(site: Site) -> None:
    for fields in ({"name": "x"}, {"password": "x"}, {}):
        fields = {"mechanism": "SCRAM-SHA-512"} | fields
        assert site.post("/users/set", fields).status_code == 400
    fields = {"name": "x", "password": "y", "mechanism": "MD5"}
    assert site.post("/users/set", fields).status_code == 400
