"""Users that log in by SCRAM."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, text_of


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "x"},
        {"password": "x"},
        {},
        {"name": "x", "password": "y", "mechanism": "MD5"},
    ],
)
def test_a_user_needs_a_name_a_password_and_a_mechanism(site: Site, fields: dict[str, str]) -> None:
    answer = site.post("/users/set", {"mechanism": "SCRAM-SHA-512"} | fields)
    assert answer.status_code == 400
    assert site.get("/users.json").json()["rows"] == []


def test_a_user_is_set_listed_changed_from_its_row_and_removed(site: Site) -> None:
    fields = {"name": "ada <i>", "password": "long-enough", "mechanism": "SCRAM-SHA-256"}
    assert "the password is set" in text_of(site.post("/users/set", fields).text)
    site.post("/users/set", fields | {"mechanism": "SCRAM-SHA-512"})
    [row] = site.get("/users.json").json()["rows"]
    assert row["name"] == "ada <i>"
    assert "SCRAM-SHA-256 (8192 iterations)" in row["mechanisms"]
    assert "SCRAM-SHA-512" in row["mechanisms"]
    page = site.page("/users")
    assert "<i>" not in page
    assert "long-enough" not in page
    assert 'href="/users?of=ada+%3Ci%3E#change"' in page
    assert 'value="ada &lt;i&gt;"' in site.page("/users?of=ada+%3Ci%3E")
    preview = site.post("/users/remove", {"name": "ada <i>"})
    assert "barnabas users remove &#39;ada &lt;i&gt;&#39;" in preview.text
    assert len(site.get("/users.json").json()["rows"]) == 1
    assert "removed" in text_of(site.do("/users/remove", name="ada <i>").text)
    assert site.get("/users.json").json()["rows"] == []
    answer = site.post("/users/remove", {"name": "ada <i>", "confirmed": "yes"})
    assert answer.status_code in (404, 409)
