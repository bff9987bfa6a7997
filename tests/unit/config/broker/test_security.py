"""Options of authorization: names of the authorizer, and super users."""

from __future__ import annotations

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.broker.security import parse_super_users
from barnabas.model.errors import ConfigError


@pytest.mark.parametrize(
    "name",
    [
        "",
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "barnabas.security.acl.AclAuthorizer",
    ],
)
def test_the_authorizer_has_three_names(name: str) -> None:
    options = BrokerOptions.parse({"authorizer.class.name": name})
    assert options.authorizer_class_name == name
    assert not [line for line in options.warnings() if "authorizer" in line]


def test_no_other_class_is_loaded() -> None:
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name=com\.example\.Mine: must be"):
        BrokerOptions.parse({"authorizer.class.name": "com.example.Mine"})


def test_super_users() -> None:
    """Commas, colons and equal signs belong to names; spaces around do not."""
    text = "User:admin; User:CN=b, O=x:y ;;Group:ops"
    assert parse_super_users(text) == (
        ("User", "admin"),
        ("User", "CN=b, O=x:y"),
        ("Group", "ops"),
    )
    assert parse_super_users("") == ()


@pytest.mark.parametrize("text", ["admin", "User:a;bob", ":a"])
def test_super_users_need_a_type(text: str) -> None:
    with pytest.raises(ConfigError, match=r"super\.users"):
        BrokerOptions.parse({"super.users": text})
