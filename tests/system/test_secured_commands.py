"""Every command over SASL_SSL with ACLs on: `--command-config` is all that it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.system.paging import Terminal, blocks, lines
from tests.unit.cli.secured import PASSWORDS, Secured, secured_broker

from barnabas.cli.main import COMMANDS, main

WITHOUT_A_CLUSTER = {
    *("start", "log", "demo", "security", "zookeeper-security", "completion", "tools")
}
"""Commands that run a broker, or need none."""

pytestmark = pytest.mark.system

Command = Callable[..., str]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture
def command(
    secured: Secured, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run a command as a user, by default the administrator; return what it prints."""
    monkeypatch.delenv("BARNABAS_BOOTSTRAP", raising=False)
    files = {user: secured.file(secured.options(user)) for user in PASSWORDS}

    def run(*words: str, user: str = "admin", code: int = 0) -> str:
        found = main([*words, "--command-config", files[user]])
        captured = capsys.readouterr()
        assert found == code, captured.err
        assert not any(secret in captured.out + captured.err for secret in PASSWORDS.values())
        return captured.out if code == 0 else captured.err

    return run


@pytest.fixture
def orders(command: Command, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A topic with ten records."""
    topic = request.node.name.replace("[", ".").replace("]", "")
    command("topics", "create", topic, "--partitions", "2")
    lines = tmp_path / "lines"
    lines.write_text("".join(json.dumps({"id": number}) + "\n" for number in range(10)))
    command("produce", topic, "--file", str(lines))
    return topic


def test_topics(command: Command, orders: str) -> None:
    assert orders in command("topics", "list")
    assert orders in command("topics", "describe", orders)
    command("topics", "alter", orders, "--partitions", "3")
    command("topics", "delete-records", orders, "--before", "end")
    command("topics", "delete", orders)
    assert orders not in command("topics", "list")


def test_configs(command: Command, orders: str) -> None:
    command("configs", "alter", "--topic", orders, "--set", "retention.ms=60000")
    assert "60000" in command("configs", "describe", "--topic", orders)


def test_records_in_and_out(command: Command, orders: str) -> None:
    everything = ("--from", "beginning", "--exit-at-end")
    assert command("consume", orders, *everything).count("\n") == 10
    assert command("consume", orders, *everything, "--group", orders).count("\n") == 10
    assert orders in command("groups", "list")
    assert "10" in command("groups", "describe", orders)
    command("groups", "reset-offsets", orders, "--topic", orders, "--to", "earliest", "--execute")
    command("groups", "delete", orders)


def test_acls_and_why(command: Command, orders: str) -> None:
    read = ("consume", orders, "--from", "beginning", "--exit-at-end")
    assert "TOPIC_AUTHORIZATION_FAILED" in command(*read, user="alice", code=1)
    why = ("acls", "list", "--why", "alice", "read", f"topic:{orders}")
    assert command(*why).startswith("denied: ")
    command("acls", "add", "--allow", "alice", "--consumer", "--topic", orders, "--group", "*")
    assert command(*why) == (f"allowed: allow User:alice read on topic:{orders} (literal) from *\n")
    assert "super user" in command("acls", "list", "--why", "admin", "write", f"topic:{orders}")
    assert command(*read, user="alice").count("\n") == 10
    assert command(*read, "--group", "hers", user="alice").count("\n") == 10
    assert "User:alice" in command("acls", "list", "--topic", orders)
    command("acls", "add", "--deny", "alice", "--operation", "read", "--topic", orders)
    assert command(*why) == f"denied: deny User:alice read on topic:{orders} (literal) from *\n"
    assert "TOPIC_AUTHORIZATION_FAILED" in command(*read, user="alice", code=1)
    assert "CLUSTER_AUTHORIZATION_FAILED" in command("acls", "list", user="alice", code=1)
    command("acls", "remove", "--principal", "alice")


def test_users_and_tokens(command: Command, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("tea")
    command("users", "add", "bob", "--password-file", str(password))
    assert "bob " in command("users", "list")
    command("users", "set-password", "bob", "--password-file", str(password))
    command("users", "remove", "bob")
    [token] = json.loads(command("tokens", "create", "--json"))
    assert token["id"] in command("tokens", "list")
    command("tokens", "renew", token["id"])
    command("tokens", "expire", token["id"])


def test_quotas(command: Command, orders: str, tmp_path: Path) -> None:
    command("quotas", "set", "--user", "admin", "producer_byte_rate=1000000")
    assert "producer_byte_rate" in command("quotas", "list")
    command("produce", orders, "--file", str(tmp_path / "lines"))
    usages = json.loads(command("quotas", "show-usage", "--json"))
    [usage] = [each for each in usages if each["quota"] == "producer_byte_rate"]
    assert (usage["entity"], usage["limit"]) == ({"user": "admin"}, 1_000_000)
    assert usage["rate"] > 0
    command("quotas", "remove", "--user", "admin")
    assert "admin" not in command("quotas", "list")


def test_what_happened(command: Command, orders: str) -> None:
    command("configs", "alter", "--client-metrics", "all", "--set", "metrics=*")
    assert "client metrics" in command("configs", "describe", "--client-metrics", "all")
    command("clients", "metrics")
    assert "every partition has a leader" in command("why", "topic", orders)
    assert isinstance(json.loads(command("diary", "--json")), list)


def test_the_cluster(command: Command, orders: str, tmp_path: Path) -> None:
    assert "0" in command("cluster", "describe")
    assert command("transactions", "list").startswith("id ")
    command("elect", "--topic", orders)
    command("reassign", "list")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [{"topic": orders, "partition": 0, "replicas": [0]}],
            }
        )
    )
    command("reassign", "execute", str(plan))
    command("reassign", "verify", str(plan))


def test_files(command: Command, orders: str, tmp_path: Path) -> None:
    exported = str(tmp_path / "orders.jsonl")
    command("export", orders, exported)
    command("topics", "create", f"{orders}.again", "--partitions", "2")
    command("import", exported, f"{orders}.again")
    everything = ("--from", "beginning", "--exit-at-end", "--isolation", "committed")
    assert command("consume", f"{orders}.again", *everything).count("\n") == 10


def test_a_mirror(command: Command, secured: Secured, orders: str) -> None:
    here = secured.addresses["BOTH"]
    both = ("--source", here, "--target", here, "--topics", orders, "--prefix", "copy.")
    command("mirror", *both, "--until-caught-up", "--name", orders)
    everything = ("--from", "beginning", "--exit-at-end", "--isolation", "committed")
    assert command("consume", f"copy.{orders}", *everything).count("\n") == 10
    command("mirror", "offsets", *both, "--dry-run")


def test_a_mirror_whose_sides_have_files_of_their_own(
    command: Command, secured: Secured, orders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = secured.file(secured.options(listener="SASL"))
    target = secured.file(secured.options(listener="TLS"))
    words = ("--consumer.config", source, "--topics", orders, "--prefix", "copy.")
    once = ("--until-caught-up", "--name", orders)
    command("acls", "add", "--allow", "ANONYMOUS", "--operation", "all", "--topic", "*")
    denied = command("mirror", *words, *once, "--producer.config", target, code=1)
    assert "AUTHORIZATION_FAILED" in denied
    wrong = secured.file({**secured.options(listener="TLS"), "security.protocol": "PLAINTEXT"})
    refused = command("mirror", *words, *once, "--producer.config", wrong, code=1)
    assert "--target" in refused
    assert f"see security.protocol); set it in {source} or {wrong}\n" in refused
    command("mirror", *words, *once, "--target", secured.addresses["BOTH"])
    everything = ("--from", "beginning", "--exit-at-end", "--isolation", "committed")
    assert command("consume", f"copy.{orders}", *everything).count("\n") == 10
    command("acls", "remove", "--principal", "ANONYMOUS")


@pytest.mark.skipif(find_spec("duckdb") is None, reason="pip install 'barnabas[sql]'")
def test_queries(command: Command, orders: str) -> None:
    query = f"select count(*) as n, max(id) as last from `{orders}`"
    assert json.loads(command("sql", query, "--json")) == [{"n": 10, "last": 9}]


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pip install 'barnabas[spark]'")
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("default")  # what PySpark warns of is its own
def test_queries_on_spark(command: Command, orders: str) -> None:
    query = f"select count(*) as n, max(id) as last from `{orders}`"
    found = command("sql", query, "--json", "--engine", "spark")
    assert json.loads(found) == [{"n": 10, "last": 9}]


@pytest.mark.skipif(find_spec("grpc") is None, reason="pip install 'barnabas[spark]'")
@pytest.mark.filterwarnings("default")
def test_a_pipeline(
    command: Command, secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = str(tmp_path / "shop")
    command("pipeline", "init", project)
    check = ["pipeline", "check", project, "--without-spark"]
    assert main(check) == 1
    assert "create it with: barnabas topics create" in capsys.readouterr().err
    for topic in ("clicks", "page-counts", "clicks-dead-letters"):
        command("topics", "create", topic)
    assert main(check) == 0
    assert not any(
        secret in path.read_text()
        for path in Path(project).rglob("*.py")
        for secret in PASSWORDS.values()
    )


def test_the_page(
    secured: Secured,
    command: Command,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, here = "users-and-tokens.md", secured.addresses["BOTH"]
    (tmp_path / "ca.pem").write_bytes(secured.ca.read_bytes())
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("change me")
    command("users", "add", "admin", "--password-file", str(password))
    for topic in command("topics", "list").split()[3::3]:
        command("topics", "delete", topic)
    command("topics", "create", "orders", "--partitions", "3")
    terminal = Terminal(here, tmp_path, capsys, monkeypatch)
    commands = terminal.follow(page, {"127.0.0.1:9092": here})
    assert len(commands) == 8
    file = ("--command-config", "client.properties")
    [token] = json.loads(terminal.type(f"barnabas tokens list --owner ada --json {' '.join(file)}"))
    renewed, expired = (
        terminal.type(line.replace("ID", token["id"])) for line in lines(blocks(page, "sh")[0])
    )
    assert f"token {token['id']} expires at" in renewed
    assert f"token {token['id']} expired at" in expired
    assert (tmp_path / "job.properties").stat().st_mode & 0o777 == 0o600


def test_measures_and_checks(command: Command, orders: str) -> None:
    sent = command("perf", "produce", orders, "--records", "10", "--json")
    assert [each["failures"] for each in json.loads(sent)] == [0]
    found = json.loads(command("doctor", "--topic", orders, "--json"))
    assert found["green"] > 0
    assert found["red"] == 0
    assert orders in command("top", "--once", "--interval", "0.05")


def test_every_command_is_here() -> None:
    tested = Path(__file__).read_text()
    for command in COMMANDS:
        assert command.name in WITHOUT_A_CLUSTER or f'"{command.name}", ' in tested, command.name
