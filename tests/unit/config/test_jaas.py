"""JAAS: Kafka's grammar for logins, and what cannot be read, without showing it."""

from __future__ import annotations

import pytest

from barnabas.config.jaas import JaasEntry, jaas_entry, jaas_file, quoted
from barnabas.model.errors import ConfigError

OPTION = "sasl.jaas.config"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('a.b.C required username="u" password="p";', {"username": "u", "password": "p"}),
        ("a.b.C required\n username='u'\n password='p' ;", {"username": "u", "password": "p"}),
        (r'C required password="q\"u;o=te";', {"password": 'q"u;o=te'}),
        (r'C required p="\n\t\b\f\r\\\101\0z\778";', {"p": "\n\t\b\f\r\\A\0z?8"}),
        ('C required p="it\'s";', {"p": "it's"}),
        ("C optional debug=true;", {"debug": "true"}),
        ("C Required a=x.y-z_$1 b=_x c=$y;", {"a": "x.y-z_$1", "b": "_x", "c": "$y"}),
        ("C SUFFICIENT a=Zürich b=東京;", {"a": "Zürich", "b": "東京"}),
        ('C requisite "a"="b";', {"a": "b"}),
        (
            "C required a=b // the end\n c=d /* and\n more */ e=f; / said",
            {"a": "b", "c": "d", "e": "f"},
        ),
        ('C required a="//" b="/* */";', {"a": "//", "b": "/* */"}),
        ('C required a="";', {"a": ""}),
        ("C required a=1st;", None),
        ("C required;", {}),
    ],
)
def test_options_are_read(text: str, options: dict[str, str] | None) -> None:
    if options is None:
        with pytest.raises(ConfigError):
            jaas_entry(text, OPTION)
    else:
        assert jaas_entry(text, OPTION).options == options


def test_module_and_flag_are_read() -> None:
    entry = jaas_entry('org.apache.X$Y requireD a="b";', OPTION)
    assert entry == JaasEntry("org.apache.X$Y", "required", {"a": "b"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no login module"),
        ("  // nothing\n", "has no login module"),
        ("C", "the flag of the login module"),
        ("C always;", "must be required, requisite, sufficient or optional"),
        ("C required", "a semicolon is missing after its flag"),
        ('C required user="hush"', "a semicolon is missing after option user"),
        ('user="hush";', "the flag of the login module"),
        ('C required user="hush;', "the value of user"),
        ("C required user='hush\n';", "the value of user"),
        ("C required hush;", "'=' is missing after the name of the option that follows its flag"),
        ('C required user="a"hush";', "that follows option user"),
        ("C required user=;", "the value of user"),
        ("C required user=12345;", "the value of user"),
        ("C required user=-hush;", "the value of user"),
        ("C required user=hush@home;", "an option after option user"),
        ("C required user=/hush;", "the value of user"),
        ('C required user="a"; D required user="hush";', "only one login module"),
    ],
)
def test_what_cannot_be_read_is_refused_without_its_values(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config=\[hidden\]: ") as failure:
        jaas_entry(text, OPTION)
    assert why in str(failure.value)
    assert "hush" not in str(failure.value)


def test_an_entry_shows_no_values() -> None:
    shown = repr(jaas_entry('C required username="u" password="hush";', OPTION))
    assert shown == "C required username=[hidden] password=[hidden]"


def test_files_have_sections() -> None:
    text = """
    // logins of this broker
    KafkaServer {
        a.Plain required username="b" user_b="c";
        a.Scram required username="d";
    };
    outside.KafkaServer { a.Plain required; };
    """
    sections = jaas_file(text, "jaas.conf")
    assert list(sections) == ["KafkaServer", "outside.KafkaServer"]
    assert [entry.module for entry in sections["KafkaServer"]] == ["a.Plain", "a.Scram"]
    assert sections["KafkaServer"][0].options == {"username": "b", "user_b": "c"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("KafkaServer", "'{' is missing after section KafkaServer"),
        ("A { C required; }", "';' is missing after section A"),
        ("A { };", "section A has no login module"),
        ("A { C required; }; A { C required; };", "section A is given twice"),
        ("A { C required;", "has no login module"),
    ],
)
def test_broken_files_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^jaas\.conf=\[hidden\]: ") as failure:
        jaas_file(text, "jaas.conf")
    assert why in str(failure.value)


@pytest.mark.parametrize("value", ["", "plain", 'q"uo\\te;', "\\n is no\nbreak\r", "//", "é東 '"])
def test_what_is_quoted_is_read_as_it_was(value: str) -> None:
    entry = jaas_entry(f"C required a={quoted(value)} b=c;", OPTION)
    assert entry.options == {"a": value, "b": "c"}
