"""Logging in, what one may then see and do, and logging out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.console.log_in import local
from barnabas.console.session import ABSOLUTE_S, IDLE_S


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console of a broker with log-ins and an authorizer."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        running.create_topic("orders")
        running.create_topic("payments")
        yield running


@pytest.fixture(autouse=True)
def _fresh(secured: Site) -> Iterator[None]:
    """Each test begins without a session, and long after the last one's failures."""
    secured.browser.cookies.clear()
    secured.now_s += 10 * ABSOLUTE_S
    yield
    secured.serving.lines.clear()


def test_without_a_session_one_is_sent_to_the_log_in(secured: Site) -> None:
    answer = secured.get("/topics?q=or")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Ftopics%3Fq%3Dor"
    assert secured.get("/topics.json").status_code == 401
    assert secured.send("/topics", [("name", "x")]).status_code == 401
    assert "orders" not in secured.page("/login")


def test_a_log_in_leads_to_where_one_wanted_to_go(secured: Site) -> None:
    answer = secured.log_in("admin", "admin-secret", "/topics?q=or")
    assert (answer.status_code, answer.headers["location"]) == (303, "/topics?q=or")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("barnabas=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "User:admin" in secured.page("/")
    assert "orders" in secured.page("/topics")


def test_behind_tls_the_cookie_is_bound_to_its_host(secured: Site) -> None:
    fields = [("name", "admin"), ("password", "admin-secret")]
    answer = secured.send("/login", fields, origin="https://127.0.0.1:8080")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-barnabas=")
    assert "Secure" in cookie


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("admin", "wrong"),
        ("nobody", "admin-secret"),
        ("", ""),
        ("admin", ""),
        ("a\0admin", "admin-secret"),
        ("admin", "x" * 2000),
        ("=,\x7f\u202e", "x"),
    ],
)
def test_a_wrong_log_in_does_not_say_what_was_wrong(
    secured: Site, name: str, password: str
) -> None:
    answer = secured.log_in(name, password)
    assert answer.status_code == 403
    assert "The name or the password is wrong." in answer.text
    assert "set-cookie" not in answer.headers
    assert secured.get("/").status_code == 303


def test_after_five_failures_one_waits(secured: Site) -> None:
    for _ in range(5):
        assert secured.log_in("admin", "wrong").status_code == 403
    answer = secured.log_in("admin", "admin-secret")
    assert answer.status_code == 429
    assert "Wait 1 s" in answer.text
    secured.now_s += 2
    assert secured.log_in("admin", "admin-secret").status_code == 303


def test_sessions_end_idle_and_absolutely(secured: Site) -> None:
    secured.log_in("admin", "admin-secret")
    secured.now_s += IDLE_S - 1
    assert secured.get("/").status_code == 200
    secured.now_s += IDLE_S + 1
    assert secured.get("/").status_code == 303
    secured.log_in("admin", "admin-secret")
    for _ in range(ABSOLUTE_S // (IDLE_S // 2) + 1):
        secured.now_s += IDLE_S // 2
        last = secured.get("/theme")
    assert last.status_code == 303


def test_a_user_without_rights_sees_and_does_nothing(secured: Site) -> None:
    secured.log_in("alice", "alice-secret")
    assert "orders" not in secured.page("/topics")
    assert "0 partitions of 0 topics" in text_of(secured.page("/"))
    denied = secured.get("/topics/orders")
    assert denied.status_code == 403
    absent = secured.get("/topics/absent")
    assert absent.status_code == 403, "an absent topic looks like one that is denied"
    assert "orders" not in secured.get("/topics.json").text
    assert secured.get("/history.json").json()["time"] == []
    assert "Median" not in secured.page("/brokers/0")
    assert secured.get("/diary.json").json()["rows"] == []
    assert secured.serving.options["log.dirs"] not in secured.page("/") + secured.page("/brokers")
    assert secured.get("/configs").status_code == 403
    for path in ("/acls", "/users", "/quotas"):
        page = text_of(secured.page(path))
        assert "denied" in page or "permission" in page, (path, page)
        assert "There are none." not in page, path
    created = secured.post("/topics", {"name": "mine"})
    assert created.status_code == 409
    assert "mine" in created.text
    for path in ("alter", "delete", "partitions", "delete-records", "elect", "fork"):
        fields = {"option": "retention.ms", "value": "1", "count": "2", "before": "end"}
        answer = secured.post(
            f"/topics/orders/{path}", fields | {"name": "orders", "confirmed": "yes"}
        )
        assert answer.status_code in (403, 409), (path, text_of(answer.text))
    secured.log_in("admin", "admin-secret")
    rows = secured.get("/topics.json").json()["rows"]
    assert [row["name"] for row in rows] == ["orders", "payments"]
    assert [row["partitions"] for row in rows] == [1, 1]


def test_may_somebody_do_something_is_answered_with_the_rule(secured: Site) -> None:
    secured.log_in("admin", "admin-secret")
    question = "/acls?principal=User:alice&operation=READ&type=TOPIC&name=orders"
    assert "No :" in text_of(secured.page(question))
    rule = {
        "principal": "User:alice", "permission": "ALLOW", "operation": "READ", "type": "TOPIC",
        "name": "ord", "pattern": "PREFIXED", "host": "*",
    }  # fmt: skip
    assert "added" in text_of(secured.do("/acls/add", **rule).text)
    assert "Yes :" in text_of(secured.page(question))
    assert "PREFIXED" in secured.page("/acls")
    secured.browser.cookies.clear()
    secured.log_in("alice", "alice-secret")
    assert [row["name"] for row in secured.get("/topics.json").json()["rows"]] == ["orders"]
    assert secured.get(question).status_code == 200
    assert "Yes :" not in text_of(secured.page(question)), "alice may not see rules"
    secured.browser.cookies.clear()
    secured.log_in("admin", "admin-secret")
    assert "removed" in text_of(secured.do("/acls/remove", **rule).text)
    assert "No :" in text_of(secured.page(question))


def test_a_user_of_scram_can_be_added_and_logs_in(secured: Site) -> None:
    secured.log_in("admin", "admin-secret")
    fields = {"name": "carol", "password": "pass-word", "mechanism": "SCRAM-SHA-256"}
    assert "the password is set" in secured.post("/users/set", fields).text
    assert "carol" in secured.page("/users")
    secured.browser.cookies.clear()
    assert secured.log_in("carol", "pass-word").status_code == 303
    assert "User:carol" in secured.page("/")
    secured.browser.cookies.clear()
    assert secured.log_in("carol", "pass-word2").status_code == 403
    secured.log_in("admin", "admin-secret")
    assert "removed" in text_of(secured.do("/users/remove", name="carol").text)
    assert "carol" not in text_of(secured.page("/users"))


def test_logging_out_ends_the_session(secured: Site) -> None:
    secured.log_in("admin", "admin-secret")
    key = secured.browser.cookies["barnabas"]
    answer = secured.post("/logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    secured.browser.cookies.set("barnabas", key)
    assert secured.get("/").status_code == 303


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/topics?q=a", "/topics?q=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nset-cookie: x", "/"),
        ("", "/"),
    ],
)
def test_only_paths_of_the_console_are_gone_to(given: str, path: str) -> None:
    assert local(given) == path
