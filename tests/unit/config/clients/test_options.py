"""Options of clients: both spellings, other names, and mistakes in clear words."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import ClientSection, parse_client_options
from barnabas.config.option import option
from barnabas.model.errors import ConfigError


class Sample(CommonOptions):
    """Common options and two more."""

    other_names: ClassVar = MappingProxyType({"max.batch.size": "batch.size"})

    batch_size: int = option("batch.size", "int", default=16384, at_least=0, doc="Bytes.")
    partitioner: Callable[..., int] | None = option(
        "partitioner", "object", default=None, doc="Chooses partitions."
    )


def parse(**given: Any) -> Sample:
    return parse_client_options(Sample, given)


@pytest.mark.parametrize("name", ["batch.size", "batch_size", "max.batch.size", "max_batch_size"])
@pytest.mark.parametrize("value", [5, "5", " 5 "])
def test_every_spelling_and_form_says_the_same(name: str, value: object) -> None:
    assert parse(**{name: value}).batch_size == 5


def test_what_is_not_given_has_its_default() -> None:
    options = parse(client_id=None, bootstrap_servers=None)
    assert options.client_id == ""
    assert options.bootstrap_servers == ("localhost:9092",)
    assert options.request_timeout_ms == 30_000


@pytest.mark.parametrize("value", ["a:1,b:2", ["a:1", "b:2"], ("a:1", "b:2"), " a:1 , b:2"])
def test_servers_are_a_text_or_a_list(value: object) -> None:
    assert parse(bootstrap_servers=value).bootstrap_servers == ("a:1", "b:2")


def test_objects_pass_as_they_are_and_survive_a_change() -> None:
    def choose(key: bytes) -> int:
        return 0

    options = parse(partitioner=choose)
    assert options.partitioner is choose
    assert options.with_overrides({"batch.size": 7}).partitioner is choose


def test_a_misspelt_name_is_an_error_that_knows_better_and_shows_no_secret() -> None:
    with pytest.raises(ConfigError) as failure:
        parse(sasl_plain_passwort="hunter2")
    said = str(failure.value)
    assert said == "sasl_plain_passwort: no such option; did you mean sasl_plain_password?"


def test_two_names_that_disagree_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"give different values for batch\.size"):
        parse(batch_size=1, max_batch_size=2)
    assert parse(batch_size=1, **{"batch.size": 1}).batch_size == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batch_size": -1}, "batch.size=-1: must be at least 0"),
        ({"request_timeout_ms": "soon"}, "request.timeout.ms=soon: must be a whole number"),
        ({"security_protocol": "TLS"}, "security.protocol=TLS: must be PLAINTEXT, SSL"),
        ({"socks5_proxy": "x"}, "socks5.proxy=x: refused: connections through a proxy"),
        ({"ssl_enabled_protocols": "SSLv3"}, "ssl.enabled.protocols=SSLv3: must be TLSv1, TLSv1"),
        ({"sasl_mechanism": "CRAM-MD5"}, "sasl.mechanism=CRAM-MD5: must be PLAIN, SCRAM"),
    ],
)
def test_a_wrong_value_is_told_with_the_option_and_the_bound(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as failure:
        parse(**given)
    assert str(failure.value).startswith(said)


def test_reserved_options_are_accepted_and_warned_about() -> None:
    options = parse(api_version=(2, 0, 0), metrics_num_samples=3)
    assert options.warnings() == [
        "api.version is set, but has no effect: versions are negotiated with each broker",
        "metrics.num.samples is set, but has no effect: metrics are counted since startup,"
        " not sampled",
    ]


def test_what_has_no_effect_is_logged_when_a_client_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parse(batch_size=5)
    assert not caplog.records
    parse(api_version=(2, 5), batch_size=5)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "api.version is set, but has no effect" in caplog.text


def test_every_other_name_stands_for_an_option() -> None:
    for section in (Sample, CommonOptions):
        for parent in section.__mro__:
            if issubclass(parent, ClientSection):
                for name, target in parent.other_names.items():
                    assert target in section.options, name
                    assert name not in section.options, name
