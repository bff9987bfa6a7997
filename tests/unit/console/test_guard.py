"""What every request passes first."""

from __future__ import annotations

import pytest
from tests.unit.console.site import HOST, Site

from barnabas.console.guard import HEADERS


def test_every_answer_has_the_headers(site: Site) -> None:
    for path in ("/", "/topics.json", "/no-such-page", "/static/absent.js"):
        answer = site.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, path
        assert "set-cookie" not in answer.headers
    assert site.get("/").headers["cache-control"] == "no-store"
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::1", "localhost:x", ""],
)
def test_a_foreign_host_is_not_answered(site: Site, host: str) -> None:
    answer = site.get("/", host=host)
    assert answer.status_code == 421
    assert "barnabas.console.hosts" in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080", "::1"])
def test_its_own_names_are_answered(site: Site, host: str) -> None:
    assert site.get("/", host=host).status_code == 200


def test_a_change_from_another_site_is_rejected(site: Site) -> None:
    token = site.token()
    fields = [("_token", token), ("theme", "dark")]
    for headers in (
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "cross-site", "origin": f"http://{HOST}"},
    ):
        answer = site.send("/theme", fields, **headers)
        assert answer.status_code == 403, headers
        assert "another site" in answer.text


def test_without_fetch_metadata_the_origin_counts(site: Site) -> None:
    token = site.token()

    async def post(origin: str | None) -> int:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if origin is not None:
            headers["origin"] = origin
        content = f"_token={token}&theme=auto"
        answer = await site.browser.post("/theme", content=content, headers=headers)
        return answer.status_code

    assert site.run(post(f"http://{HOST}")) == 303
    assert site.run(post("http://evil.example")) == 403
    assert site.run(post("null")) == 403
    assert site.run(post(None)) == 403


def test_a_form_needs_the_token_of_its_session(site: Site) -> None:
    for pairs in ([("theme", "dark")], [("_token", "x" * 43), ("theme", "dark")]):
        answer = site.send("/theme", pairs)
        assert answer.status_code == 403
        assert "not from your session" in answer.text


def test_other_methods_and_large_bodies_are_rejected(site: Site) -> None:
    assert site.run(site.browser.request("PUT", "/")).status_code == 405
    assert site.run(site.browser.request("DELETE", "/topics/x")).status_code == 405
    headers = {"content-length": str(2**40), "sec-fetch-site": "same-origin"}
    answer = site.run(site.browser.post("/theme", content=b"", headers=headers))
    assert answer.status_code == 413


def test_an_exception_of_a_page_becomes_a_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(site.window, "brokers", broken)
    answer = site.get("/brokers")
    assert answer.status_code == 500
    assert "This is a bug" in answer.text
    site.serving.expect_line("a page failed")
