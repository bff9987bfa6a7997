"""The options of secured brokers: accepted by the broker, and the same secrets on all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.broker.security import parse_super_users
from barnabas.config.jaas import jaas_entry
from barnabas.model.errors import ConfigError
from barnabas.security.setup.broker_options import (
    PROTOCOLS,
    BrokerAddress,
    addresses,
    new_secret,
    own_options,
    protocol_of,
    shared_options,
)
from barnabas.tls.principal_rules import PrincipalRules


def shared(protocol: str, client_auth: str = "none") -> dict[str, str]:
    return shared_options(
        protocol,
        truststore=Path("/s/ca.crt"),
        users=Path("/s/users"),
        client_auth=client_auth,
        zookeeper="zk:2181",
        random_bytes=os.urandom,
    )


def test_secrets_are_long_and_need_no_quotes() -> None:
    secrets = {new_secret(os.urandom) for _ in range(50)}
    assert len(secrets) == 50
    assert {len(secret) for secret in secrets} == {32}
    assert all(secret.isalnum() for secret in secrets)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broker_accepts_the_options_of_every_protocol(protocol: str) -> None:
    address = BrokerAddress(1, ("k1", "10.0.0.1"), 9093)
    given = {**own_options(address, protocol, Path("/s/broker.pem"), "data"), **shared(protocol)}
    options = BrokerOptions.parse(given)
    assert options.warnings() == []
    [endpoint] = options.endpoints.bind
    assert endpoint.protocol.name == protocol == protocol_of(given)
    assert options.endpoints.inter_broker == protocol
    assert parse_super_users(options.super_users) == (("User", "admin"), ("User", "broker"))
    assert options.allow_everyone_if_no_acl_found is False
    assert options.authorizer_class_name


def test_brokers_log_in_to_each_other_by_a_password_that_each_of_them_knows() -> None:
    options = shared("SASL_SSL")
    name = "listener.name.sasl_ssl.plain.sasl.jaas.config"
    login = jaas_entry(options[name], name).options
    assert login["username"] == "broker"
    assert login["password"] == login["user_broker"]
    assert options["sasl.mechanism.inter.broker.protocol"] == "PLAIN"


def test_every_secret_is_another_one() -> None:
    options = shared("SASL_SSL")
    password = jaas_entry(options["listener.name.sasl_ssl.plain.sasl.jaas.config"], "x").options
    secrets = [options["delegation.token.secret.key"], options["password.encoder.secret"]]
    assert len({*secrets, password["password"]}) == 3


def test_certificates_name_the_client_only_on_ssl() -> None:
    assert shared("SSL")["ssl.client.auth"] == "required"
    rules = PrincipalRules(shared("SSL")["ssl.principal.mapping.rules"])
    assert rules.name_of("CN=broker,OU=broker 1") == "broker"
    assert rules.name_of("CN=ada") == "ada"
    wanted = shared("SASL_SSL", "required")
    assert wanted["listener.name.sasl_ssl.ssl.client.auth"] == "required"
    assert "ssl.client.auth" not in "".join(shared("SASL_SSL"))


def test_a_broker_on_this_machine_is_not_open_to_the_network() -> None:
    here = BrokerAddress(1, ("127.0.0.1",), 9092)
    assert here.certified == ("127.0.0.1", "localhost", "::1")
    options = own_options(here, "SASL_SSL", Path("b"), "data")
    assert options["listeners"] == "SASL_SSL://127.0.0.1:9092"
    there = BrokerAddress(2, ("k1", "10.0.0.1"), 9092)
    assert there.certified == ("k1", "10.0.0.1")
    options = own_options(there, "SASL_SSL", Path("b"), "data")
    assert options["listeners"] == "SASL_SSL://:9092"
    assert options["advertised.listeners"] == "SASL_SSL://k1:9092"
    six = own_options(BrokerAddress(1, ("::1",), 9092), "SASL_SSL", Path("b"), "data")
    assert six["listeners"] == "SASL_SSL://[::1]:9092"


def test_brokers_on_one_host_have_ports_of_their_own() -> None:
    assert [each.advertised for each in addresses(3, [("k",)], 9092)] == [
        *("k:9092", "k:9093", "k:9094")
    ]
    apart = addresses(2, [("k1",), ("k2", "10.0.0.2")], 9092, first_id=4)
    assert [(each.broker_id, each.advertised) for each in apart] == [(4, "k1:9092"), (5, "k2:9092")]


@pytest.mark.parametrize(
    ("count", "hosts", "port", "complaint"),
    [
        (3, [("a",), ("b",)], 9092, "--host is given 2 times for 3 brokers"),
        (1, [("a",)], 0, "--port 0"),
        (3, [("a",)], 65_534, "ports 65534 to 65536"),
    ],
)
def test_addresses_that_make_no_cluster(
    count: int, hosts: list[tuple[str, ...]], port: int, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        addresses(count, hosts, port)
