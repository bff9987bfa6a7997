"""ACLs: rules, changed by a form or from their row, and who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest
from tests.unit.console.actions import RULE
from tests.unit.console.site import SECURED, Site, text_of


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with an authorizer, and a super user's session."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        running.log_in("admin", "admin-secret")
        yield running
        running.serving.lines.clear()


def test_without_an_authorizer_there_are_no_rules(site: Site) -> None:
    page = text_of(site.page("/acls?principal=alice&operation=READ&type=TOPIC&name=x"))
    assert "no authorizer is configured" in page
    answer = site.post("/acls/add", RULE | {"confirmed": "yes"})
    assert answer.status_code == 409


@pytest.mark.parametrize("field", ["principal", "operation", "type", "name"])
def test_an_incomplete_rule_is_rejected(site: Site, field: str) -> None:
    assert site.post("/acls/add", RULE | {field: ""}).status_code == 400


def test_a_rule_is_added_and_removed_from_its_row(secured: Site) -> None:
    rule = RULE | {"principal": "User:a b", "operation": "DESCRIBE_CONFIGS", "host": "10.0.0.7"}
    preview = secured.post("/acls/add", rule)
    assert unescape(preview.text).count(
        "barnabas acls add --allow 'User:a b' --operation describe-configs --topic orders "
        "--pattern literal --host 10.0.0.7"
    )
    assert secured.get("/acls.json").json()["rows"] == []
    secured.do("/acls/add", **rule)
    [row] = secured.get("/acls.json").json()["rows"]
    assert row == {key: rule[key] for key in row}, "and no column of links"
    page = secured.page("/acls")
    link = next(each for each in page.split('"') if each.startswith("/acls?rule-"))
    filled = secured.page(unescape(link).partition("#")[0])
    assert '<details id="remove" open>' in filled
    assert 'id="remove-principal" name="principal" value="User:a b"' in filled
    assert "<option selected>DESCRIBE_CONFIGS</option>" in filled
    done = secured.do("/acls/remove", **rule)
    assert "removed" in text_of(done.text)
    assert secured.get("/acls.json").json()["rows"] == []


def test_a_rule_of_the_cluster_needs_no_name(secured: Site) -> None:
    rule = RULE | {"type": "CLUSTER", "name": "", "operation": "DESCRIBE"}
    preview = secured.post("/acls/add", rule)
    assert "--operation describe --cluster" in preview.text
    secured.do("/acls/add", **rule)
    [row] = secured.get("/acls.json").json()["rows"]
    assert row["name"] == "kafka-cluster"
    secured.do("/acls/remove", **rule)


def test_rules_are_found_by_any_part(secured: Site) -> None:
    secured.do("/acls/add", **RULE)
    assert len(secured.get("/acls.json?q=MALLORY").json()["rows"]) == 1
    assert secured.get("/acls.json?q=absent").json()["rows"] == []
    secured.create_topic("orders")
    page = text_of(secured.page("/topics/orders"))
    assert "User:mallory ALL ALLOW * literal orders" in page
    secured.do("/acls/remove", **RULE)
