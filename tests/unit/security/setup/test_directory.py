"""The directory of a cluster: complete, private, extended, and never overwritten."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from barnabas.config.broker import BrokerOptions
from barnabas.config.properties import read_properties
from barnabas.model.errors import ConfigError
from barnabas.security.initial_users import InitialUser
from barnabas.security.setup.broker_options import addresses
from barnabas.security.setup.certificates import certificate_in
from barnabas.security.setup.directory import SecurityDirectory, check_client_name

NOW = datetime.now(UTC).replace(microsecond=0)


class Maker:
    """Makes one directory, step by step, and keeps what it reports."""

    def __init__(self, path: Path, now: datetime = NOW) -> None:
        self.reported: dict[str, bool] = {}
        self.path = path
        self.directory = SecurityDirectory(path, now, os.urandom, self._report)

    def _report(self, file: Path, created: bool) -> None:
        self.reported[str(file.relative_to(self.path))] = created

    def create(
        self, count: int = 1, zookeeper: str | None = None, client_auth: str | None = "none"
    ) -> Maker:
        brokers = addresses(count, [("127.0.0.1",)], 9092)
        self.directory.create(brokers, zookeeper=zookeeper, client_auth=client_auth)
        self.directory.add_client("app", "app-")
        return self

    def bytes(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file()
        }


def test_everything_is_for_its_owner_alone(tmp_path: Path) -> None:
    made = Maker(tmp_path / "s").create()
    for path in [made.path, *made.path.rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    assert set(made.reported) == set(made.bytes())
    assert all(made.reported.values())


def test_a_second_time_changes_no_byte(tmp_path: Path) -> None:
    before = Maker(tmp_path / "s").create().bytes()
    again = Maker(tmp_path / "s", NOW + timedelta(days=1)).create()
    assert again.bytes() == before
    assert not any(again.reported.values())


def test_a_further_broker_is_added_to_the_same_cluster(tmp_path: Path) -> None:
    before = Maker(tmp_path / "s").create(3, "zk:2181").bytes()
    more = Maker(tmp_path / "s").create(4, "zk:2181")
    after = more.bytes()
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"brokers/4/broker.pem", "brokers/4/server.properties"}
    more.directory.add_broker(addresses(1, [("k5",)], 9092, 5)[0])
    options = [
        BrokerOptions.parse(read_properties(path.read_text()))
        for path in more.directory.server_properties().values()
    ]
    assert [each.broker_id for each in options] == [1, 2, 3, 4, 5]
    assert len({str(each.given["password.encoder.secret"]) for each in options}) == 1
    assert [each.log_directories for each in options[:2]] == [("data-1",), ("data-2",)]
    name = certificate_in((more.path / "brokers/5/broker.pem").read_bytes())
    hosts = name.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [each.value for each in hosts] == ["k5"]
    with pytest.raises(ConfigError, match="broker 5 exists already"):
        more.directory.add_broker(addresses(1, [("k5",)], 9092, 5)[0])


def test_several_brokers_need_zookeeper(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--zookeeper"):
        Maker(tmp_path / "s").create(2)
    assert not (tmp_path / "s").exists()
    alone = Maker(tmp_path / "s").create()
    with pytest.raises(ConfigError, match=r"has no zookeeper\.connect"):
        alone.directory.add_broker(addresses(1, [("k2",)], 9092, 2)[0])
    with pytest.raises(ConfigError, match="created for one broker alone"):
        Maker(tmp_path / "s").create(2, "zk:2181")


def test_what_is_there_is_not_changed_by_other_words(tmp_path: Path) -> None:
    made = Maker(tmp_path / "s").create(client_auth="requested")
    before = made.bytes()
    with pytest.raises(ConfigError, match=r"--client-auth none: .*=requested, and is not overwrit"):
        Maker(tmp_path / "s").create(client_auth="none")
    with pytest.raises(ConfigError, match=r"--zookeeper zk:2181: .*is not overwritten"):
        Maker(tmp_path / "s").create(zookeeper="zk:2181")
    Maker(tmp_path / "s").create(client_auth=None)
    assert made.bytes() == before


def test_users_can_log_in_by_the_passwords_in_the_files(tmp_path: Path) -> None:
    made = Maker(tmp_path / "s").create()
    for name, options in (("admin", "admin.properties"), ("app", "clients/app/client.properties")):
        password = (made.path / f"clients/{name}/password").read_text().strip()
        assert password in read_properties((made.path / options).read_text())["sasl.jaas.config"]
        path = made.path / f"users/{name}.json"
        user = InitialUser.decode(str(path), path.read_bytes())
        assert user.name == name
        assert bool(user.acls) == (name == "app")


def test_certificates_are_in_the_options_if_brokers_ask(tmp_path: Path) -> None:
    assert b"keystore" not in Maker(tmp_path / "a").create().bytes()["admin.properties"]
    asked = Maker(tmp_path / "b").create(client_auth="required")
    assert b"ssl.keystore.location" in asked.bytes()["admin.properties"]
    assert b"ssl.keystore.location" in asked.bytes()["clients/app/client.properties"]


def test_a_client_may_have_another_prefix_or_nothing(tmp_path: Path) -> None:
    made = Maker(tmp_path / "s").create()
    made.directory.add_client("billing", "invoices-")
    made.directory.add_client("reports", None)
    users = {
        name: InitialUser.decode("f", (made.path / f"users/{name}.json").read_bytes())
        for name in ("billing", "reports")
    }
    assert {acl.pattern.name for acl in users["billing"].acls} == {"invoices-"}
    assert users["reports"].acls == ()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "-x", "a b", "ü", "x" * 65, "admin", "broker"])
def test_names_that_no_client_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="client "):
        check_client_name(name)
    made = Maker(tmp_path / "s").create()
    before = made.bytes()
    with pytest.raises(ConfigError):
        made.directory.add_client(name, None)
    assert made.bytes() == before


def test_certificates_are_renewed_before_they_expire(tmp_path: Path) -> None:
    before = Maker(tmp_path / "s").create().bytes()
    early = Maker(tmp_path / "s", NOW + timedelta(days=300))
    assert [each.renewed for each in early.directory.renew(timedelta(days=30))] == [False] * 3
    assert early.bytes() == before
    late = Maker(tmp_path / "s", NOW + timedelta(days=340))
    outcome = late.directory.renew(timedelta(days=30))
    assert [str(each.path.relative_to(late.path)) for each in outcome if each.renewed] == [
        "brokers/1/broker.pem",
        "clients/admin/client.pem",
        "clients/app/client.pem",
    ]
    assert {each.expires for each in outcome} == {NOW + timedelta(days=340 + 365)}
    changed = {name for name, content in late.bytes().items() if content != before[name]}
    assert changed == {str(each.path.relative_to(late.path)) for each in outcome}
    assert stat.S_IMODE((late.path / "brokers/1/broker.pem").stat().st_mode) == 0o600
    assert all(each.renewed for each in early.directory.renew(None))


def test_without_the_authoritys_key_nothing_is_issued(tmp_path: Path) -> None:
    """It may be kept elsewhere; what is there goes on working."""
    made = Maker(tmp_path / "s").create()
    (made.path / "ca.key").unlink()
    again = Maker(tmp_path / "s").create()
    assert "ca.key" not in again.bytes()
    with pytest.raises(ConfigError, match=r"ca\.key: is missing"):
        again.directory.add_client("more", None)


def test_what_was_interrupted_is_completed(tmp_path: Path) -> None:
    made = Maker(tmp_path / "s").create()
    before = made.bytes()
    for name in ("users/app.json", "clients/app/client.pem", "admin.properties"):
        (made.path / name).unlink()
    again = Maker(tmp_path / "s").create()
    after = again.bytes()
    assert set(after) == set(before)
    assert after["admin.properties"] == before["admin.properties"]
    assert after["clients/app/password"] == before["clients/app/password"]


def test_an_empty_directory_has_no_cluster(tmp_path: Path) -> None:
    directory = Maker(tmp_path / "s").directory
    assert not directory.is_complete
    assert directory.server_properties() == {}
    for call in (lambda: directory.add_client("a", None), lambda: directory.renew(None)):
        with pytest.raises(ConfigError, match="first: barnabas security init"):
            call()
