"""The commands that pages name exist, and take the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape

import pytest
from tests.unit.console.actions import ACTIONS, RULE
from tests.unit.console.site import Site

from barnabas.cli.main import COMMANDS, parser

PAGES = (
    "/brokers", "/brokers/0", "/topics", "/topics/or-ders", "/new-topic",
    "/groups", "/groups/b%20illing", "/pipelines", "/transactions", "/reassign", "/elections",
    "/acls", "/users", "/quotas", "/configs", "/configs?type=topic&name=or-ders", "/clients",
    "/configs?type=loggers&name=0", "/diary", "/diary?kind=group", "/why?of=group&name=b%20illing",
    "/why?of=partition&name=or-ders-0", "/logs", "/topics/or-ders/records",
    "/topics/or-ders/records?from=oldest&partition=0",
    "/topics/or-ders/records?from=time&time=2026-11-18T12:00Z",
)  # fmt: skip
SHOWN = re.compile(r"<code>(barnabas [^<]*)</code>")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with names that a shell would take apart."""
    with Site(tmp_path_factory.mktemp("data")) as running:
        running.create_topic("or-ders", 1)
        running.produce("or-ders", *"abc")
        running.commit("b illing", "or-ders", 1)
        running.post("/users/set", ACTIONS["/users/set"] | {"name": "c arol"})
        yield running
        running.serving.lines.clear()


def hold_that_they_parse(page: str) -> int:
    """Parse the commands of a page; return how many there were."""
    found = SHOWN.findall(page)
    for shown in found:
        words = shlex.split(unescape(shown), comments=True)
        [command] = [each for each in COMMANDS if each.name == words[1]]
        try:
            parser(command).parse_args(words[2:])
        except SystemExit as failure:
            raise AssertionError(f"no such command: {unescape(shown)}") from failure
    return len(found)


@pytest.mark.parametrize("path", PAGES)
def test_commands_of_pages_exist(named: Site, path: str) -> None:
    assert hold_that_they_parse(named.page(path)) > 0


PREVIEWS = {
    "/topics/or-ders/alter": {"option": "retention.ms", "value": "7 7", "operation": "delete"},
    "/topics/or-ders/delete": {},
    "/topics/or-ders/partitions": {"count": "3"},
    "/topics/or-ders/delete-records": {"before": "end", "partition": "0"},
    "/topics/or-ders/fork": {"name": "forked", "at": "1763510400000"},
    "/groups/b%20illing/reset": {"topic": "or-ders", "to": "-1"},
    "/groups/b%20illing/delete": {},
    "/reassign/cancel": {},
    "/reassign/unthrottle": {"topics": "or-ders"},
    "/acls/add": RULE | {"principal": "User:a b", "host": "10.0.0.7"},
    "/acls/remove": RULE | {"type": "CLUSTER", "operation": "DESCRIBE_CONFIGS"},
    "/users/remove": {"name": "c arol"},
    "/quotas/set": {"user": "a b", "key": "producer_byte_rate", "value": "5"},
    "/configs/alter": {
        "type": "loggers", "name": "0", "option": "barnabas.groups", "value": "DEBUG",
        "operation": "set",
    },
}  # fmt: skip


@pytest.mark.parametrize("path", PREVIEWS)
def test_commands_of_previews_exist(named: Site, path: str) -> None:
    answer = named.post(path, PREVIEWS[path])
    assert answer.status_code == 200, answer.text[-400:]
    assert hold_that_they_parse(answer.text) > 0
