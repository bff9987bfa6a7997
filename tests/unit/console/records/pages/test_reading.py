"""Rights and modes of the pages about records."""

from __future__ import annotations

import re

import pytest
from tests.unit.broker.serving import TIMESTAMP, create_topic
from tests.unit.console.records.putting import put
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.model.visitor import Mode


def test_the_users_own_rights_decide(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Site(tmp_path_factory.mktemp("secured"), SECURED) as secured:
        secured.log_in("admin", "admin-secret")
        admin = secured.browser
        secured.create_topic("guarded")
        secured.browser = secured.new_browser()
        secured.log_in("alice", "alice-secret")
        for path in (
            "records", "records.jsonl", "0/0", "0/0/value.bin", "records/events", "records?q=a",
        ):  # fmt: skip
            denied = secured.get(f"/topics/guarded/{path}")
            assert denied.status_code in (403, 404), (path, denied.status_code)
        page = secured.get("/topics").text
        token_of_alice = re.search(r'name="_token" value="([^"]*)"', page)
        assert token_of_alice is not None
        planned = secured.send(
            "/topics/guarded/records/produce",
            [("_token", token_of_alice[1]), ("value", "x"), ("value_format", "text"),
             ("confirmed", "yes")],
        )  # fmt: skip
        assert "there is no topic guarded, or it may not be seen" in text_of(planned.text)
        secured.run(secured.browser.aclose())
        secured.browser = admin
        assert secured.get("/topics/guarded/records").status_code == 200
        assert "Nothing" not in secured.get("/topics/guarded/records?from=oldest").text


@pytest.mark.parametrize("mode", [Mode.READ_ONLY, Mode.METADATA_ONLY])
def test_modes_forbid_what_they_say(tmp_path_factory: pytest.TempPathFactory, mode: Mode) -> None:
    with Site(tmp_path_factory.mktemp("mode"), mode=mode) as limited:
        with limited.serving.connect() as wire:
            create_topic(wire, "shown")
        put(limited, "shown", [(TIMESTAMP, None, b"secret", ())])
        reads = mode is Mode.READ_ONLY
        for path in ("records", "0/0", "0/0/value.bin", "records.jsonl"):
            response = limited.get(f"/topics/shown/{path}")
            assert response.status_code == (200 if reads else 403), path
            assert ("secret" in response.text) == reads, path
        page = limited.get("/topics").text
        found = re.search(r'name="_token" value="([^"]*)"', page)
        assert found is not None
        sent = limited.send(
            "/topics/shown/records/produce",
            [("_token", found[1]), ("value", "x"), ("value_format", "text"),
             ("confirmed", "yes"), ("target", "shown")],
        )  # fmt: skip
        assert "forbids it" in text_of(sent.text)
