"""`barnabas zookeeper-security`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from kazoo.client import KazooClient
from tests.zookeeper import SecuredServer, secured, zookeeper_classpath  # noqa: F401

from barnabas.cli.main import main


def test_nodes_are_restricted_and_opened_again(
    secured: SecuredServer,  # noqa: F811  a fixture is asked for by its name
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chroot = secured.new_chroot()
    client = KazooClient(secured.server.address)
    client.start(60)
    client.ensure_path(f"{chroot}/brokers/ids")
    login = secured.login("broker")["java.security.auth.login.config"]
    file = tmp_path / "server.properties"
    file.write_text(
        f"zookeeper.connect={secured.server.address}{chroot}\n"
        f"java.security.auth.login.config={login}\n"
        "zookeeper.connection.timeout.ms=60000\n"
    )
    where = f"{secured.server.address}{chroot}"
    assert main(["zookeeper-security", "secure", "--config", str(file)]) == 0
    assert capsys.readouterr().out == f"secure: ACLs of 3 nodes at {where}\n"
    rights = {
        (acl.id.scheme, acl.id.id): acl.acl_list for acl in client.get_acls(f"{chroot}/brokers")[0]
    }
    assert rights == {("sasl", "broker"): ["ALL"], ("world", "anyone"): ["READ"]}
    assert main(["zookeeper-security", "unsecure", "--config", str(file)]) == 0
    assert capsys.readouterr().out == f"unsecure: ACLs of 3 nodes at {where}\n"
    rights = {
        (acl.id.scheme, acl.id.id): acl.acl_list for acl in client.get_acls(f"{chroot}/brokers")[0]
    }
    assert rights == {("world", "anyone"): ["ALL"]}
    client.stop()
    client.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["secure"], "set --zookeeper, or zookeeper.connect"),
        (["secure", "--config", "/none"], "--config /none: cannot read"),
        (["unsecure", "--zookeeper", "zk:1"], "zookeeper.set.acl=true requires credentials"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zookeeper-security", *words]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("barnabas zookeeper-security: ")
    assert said in shown
    assert shown.count("\n") == 1
