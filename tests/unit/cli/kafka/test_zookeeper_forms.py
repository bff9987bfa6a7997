"""`zookeeper-shell`, and `--zookeeper` of `kafka-configs` and `kafka-acls`, on a tree in memory."""

from __future__ import annotations

import io
from importlib import import_module

import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.kafka.tool_runs import RunTool, runner
from tests.unit.cli.kafka.trees import TreeInMemory

WHERE = "localhost:2181/kafka"
GREETING = (
    f"Connecting to {WHERE}\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"
)


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> TreeInMemory:
    tree = TreeInMemory()
    names = [f"barnabas.cli.kafka.{name}" for name in ("tree", "zookeeper_shell", "config_tree")]
    for module in [import_module(name) for name in names]:  # all of them before the first patch
        monkeypatch.setattr(module, "on_tree", tree)
    return tree


@pytest.fixture
def shell(tree: TreeInMemory, capsys: pytest.CaptureFixture[str]) -> RunTool:
    run = runner("zookeeper-shell.sh", None, capsys)

    def on_nodes(*words: str) -> Run:
        done = run(WHERE, *words)
        assert done.out.startswith(GREETING)
        return done._replace(out=done.out.removeprefix(GREETING))

    return on_nodes


def test_nodes(shell: RunTool, tree: TreeInMemory) -> None:
    tree.register_broker(3)
    tree.register_broker(1)
    assert shell("ls", "/brokers/ids") == (0, "[1, 3]\n", "")
    assert shell("create", "/mine", "some", "text") == (0, "", "Created /mine\n")
    assert shell("get", "/mine").out == "some text\n"
    assert shell("set", "/mine", "other").code == 0
    out = shell("get", "-s", "/mine").out
    assert out.startswith("other\ncZxid = 0x")
    assert "dataVersion = 1\n" in out
    assert shell("create", "/mine/child").err == "Created /mine/child\n"
    assert shell("ls", "-R", "/mine").out == "/mine\n/mine/child\n"
    assert shell("delete", "/mine") == (1, "", "Node not empty: /mine\n")
    assert shell("set", "-v", "7", "/mine", "x") == (1, "", "version No is not valid : /mine\n")
    assert shell("deleteall", "/mine") == (0, "", "")
    assert shell("get", "/mine") == (1, "", "Node does not exist: /mine\n")


def test_commands_on_standard_input(shell: RunTool, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "create /a 1\nget /none\nget /a\nsing\n'\nquit\nget /a\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    run = shell()
    assert (run.code, run.out.splitlines()[1:]) == (0, ["1", "No closing quotation"])
    assert run.err.splitlines()[:2] == ["Created /a", "Node does not exist: /none"]
    assert run.err.endswith("Command not found: sing\n")


def test_misuse_of_the_shell(shell: RunTool, capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("zookeeper-shell", None, capsys)
    assert run().err.startswith("usage: zookeeper-shell HOST:PORT")
    assert (run("-zk-tls-config-file", "f").code, run("--help").code) == (1, 0)
    assert shell("sing").code == 127


def test_credentials_before_the_first_broker(
    tree: TreeInMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = runner("kafka-configs.sh", None, capsys)
    alice = ("--zookeeper", WHERE, "--entity-type", "users", "--entity-name", "alice")
    run = configs("--alter", "--add-config", "SCRAM-SHA-256=[password=secret]", *alice)
    warning, again, done = run.out.splitlines()
    assert (run.code, run.err) == (0, "")
    assert warning.startswith("Warning: --zookeeper is deprecated")
    assert again == "Use --bootstrap-server instead to specify a broker to connect to."
    assert done == "Completed updating config for entity: user-principal 'alice'."
    shown = configs("--describe", *alice).out
    assert "Configs for user-principal 'alice' are SCRAM-SHA-256=" in shown
    assert "secret" not in shown
    assert configs("--alter", "--delete-config", "SCRAM-SHA-256", *alice).code == 0
    assert "SCRAM" not in configs("--describe", *alice).out
    assert tree.addresses == [WHERE] * 4


def test_options_of_a_broker_that_runs(
    tree: TreeInMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = runner("kafka-configs", None, capsys)
    where = ("--zookeeper", WHERE, "--entity-type", "brokers", "--entity-name", "7")
    change = ("--alter", "--add-config", "log.cleaner.threads=2")
    assert configs(*where, *change).out.endswith("for entity: brokers '7'.\n")
    tree.register_broker(7)
    run = configs(*where, *change)
    assert run.code == 1
    assert "--bootstrap-server option must be specified" in run.err
    assert run.err.endswith("- broker 7 is running.\n")


def test_rules_before_the_first_broker(
    tree: TreeInMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    acls = runner("kafka-acls.sh", None, capsys)
    where = ("--authorizer-properties", f"zookeeper.connect={WHERE}")
    topic = ("--topic", "orders")
    words = ("--allow-principal", "User:Bob", "--operation", "Read")
    one = (
        "`ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`: \n "
        "\t(principal=User:Bob, host=*, operation=READ, permissionType=ALLOW) \n\n"
    )
    run = acls(*where, "--add", *words, *topic)
    assert (run.code, run.out) == (0, f"Adding ACLs for resource {one}")
    assert run.err.startswith("Warning: support for ACL configuration directly")
    assert acls(*where, "--list", *topic).out == f"Current ACLs for resource {one}"
    assert acls(*where, "--list", "--topic", "other").out == ""
    assert acls(*where, "--remove", *topic, "--force").code == 0
    assert acls(*where, "--list").out == ""
    wrong = acls("--authorizer-properties", "a=b", "--list")
    assert "needs zookeeper.connect=HOST:PORT" in wrong.err


def test_a_tree_without_brokers(tree: TreeInMemory, capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("kafka-topics.sh", None, capsys)("--zookeeper", WHERE, "--list")
    assert run.code == 1
    warning, failure = run.out.splitlines()
    assert warning.startswith("Warning: --zookeeper is deprecated")
    assert "no broker with a listener of PLAINTEXT is registered there" in failure


@pytest.mark.parametrize(
    "words",
    [
        ("zookeeper-shell", "127.0.0.1:1", "ls", "/"),
        ("kafka-topics", "--zookeeper", "127.0.0.1:1", "--list"),
        ("kafka-configs", "--zookeeper", "127.0.0.1:1", "--describe", "--broker", "1"),
    ],
)
def test_no_zookeeper(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.cli.kafka.tree.CONNECTION_TIMEOUT_MS", "300")
        run = runner(words[0], None, capsys)(*words[1:])
    assert run.code == 1
    assert "127.0.0.1:1" in run.out + run.err
