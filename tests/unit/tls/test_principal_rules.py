"""Rules from subjects to user names; the rows are what Apache Kafka 3.9 makes of them."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError
from barnabas.tls.principal_rules import PrincipalRules


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=duke,O=Org", "CN=duke,O=Org"),
        (
            "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
            "CN=duke,OU=ServiceUsers,O=Org,C=US",
            "duke",
        ),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=duke,OU=x", "CN=duke,OU=x"),
        (
            "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
            "CN=DUKE,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
            "duke@sme",
        ),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "CN=kafka-server1,OU=KAFKA", "kafka"),
        ("RULE:CN=(.*)/$1$2-$12/", "CN=duke", "duke$2-duke2"),
        ("RULE:(.*)/x$1/", "CN=d", "xCN=dx"),
        ("RULE:^CN=(.*)$/$1/U", "CN=Duke", "DUKE"),
        ("RULE:^CN=(?<who>.*)$/${who}!/", "CN=duke", "duke!"),
        ("RULE:^CN=(?<=CN=)(.*)$/$1/", "CN=duke", "duke"),
        (r"RULE:^CN=(.*)\/(.*)$/$2\/$1/", "CN=a/b", "b/a"),
        ("RULE:^CN=(.*)$/$0/", "CN=duke", "CN=duke"),
        (" RULE:^OU=.*$/ou/ , RULE:^CN=(.*)$/$1/ , DEFAULT ", "CN=duke", "duke"),
        ("RULE:^CN=(a)?(.*)$/[$1]$2/", "CN=duke", "[]duke"),
        ("RULE:^CN=(.*?),.*$/$1/", "CN=duke", None),
        ("", "CN=duke", None),
    ],
)
def test_the_first_rule_that_matches_names_the_user(
    rules: str, subject: str, name: str | None
) -> None:
    assert PrincipalRules(rules).name_of(subject) == name


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:^CN=(.*)$/$1/Lxyz",
        "RULE:^CN=(.*)$/$1",
        "nonsense",
        "DEFAULT nonsense",
        "DEFAULT,RULE:/",
        "RULE:^CN=(.*$/$1/",
        "RULE:^CN=(.*)$/${who}/",
    ],
)
def test_malformed_rules_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules="):
        PrincipalRules(rules)
