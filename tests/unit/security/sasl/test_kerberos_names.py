"""Rules for names of Kerberos principals, as Kafka applies them."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.security.sasl.kerberos_names import KerberosNames

REALM = "EXAMPLE.COM"


@pytest.mark.parametrize(
    ("rules", "principal", "name"),
    [
        (["DEFAULT"], "kafka/host1@EXAMPLE.COM", "kafka"),
        (["DEFAULT"], "alice@EXAMPLE.COM", "alice"),
        ([r"RULE:[2:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"], "kafka/h@OTHER.COM", "kafka"),
        ([r"RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*///L"], "Bob@EXAMPLE.COM", "bob"),
        ([r"RULE:[1:$1]/U", "DEFAULT"], "bob@OTHER.COM", "BOB"),
        ([r"RULE:[2:$1-$2]"], "kafka/h@OTHER.COM", "kafka-h"),
        ([r"RULE:[1:$1]s/a/o/"], "banana@X", "bonana"),
        ([r"RULE:[1:$1]s/a/o/g"], "banana@X", "bonono"),
        ([r"RULE:[1:$1](b.*)s/a/o/g", "RULE:[1:other]"], "alice@X", "other"),
    ],
)
def test_the_first_rule_that_applies_decides(rules: list[str], principal: str, name: str) -> None:
    assert KerberosNames(rules).short_name(principal, REALM) == name


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (["DEFAULT"], "alice@OTHER.COM"),
        ([r"RULE:[1:$1@$0]"], "alice@EXAMPLE.COM"),
        ([r"RULE:[2:$1]"], "alice@EXAMPLE.COM"),
        (["DEFAULT"], "alice"),
        (["DEFAULT"], "a/b/c@EXAMPLE.COM"),
    ],
)
def test_other_principals_have_no_name(rules: list[str], principal: str) -> None:
    with pytest.raises(InvalidValueError):
        KerberosNames(rules).short_name(principal, REALM)


@pytest.mark.parametrize("rule", ["", "default", "RULE:x", "RULE:[1:$1](()s/a/b/", "RULE:[1:$2]"])
def test_broken_rules_are_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules="):
        KerberosNames([rule])
