"""Declared options: parsing, bounds, errors that say what is wrong, and immutable sections."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config import reasons
from barnabas.config.option import Kind, Option, Password, Section, attribute_name, option, reserved
from barnabas.model.errors import ConfigError


class Sample(Section):
    """One option of each kind, and of each status."""

    flag: bool = option("flag", "boolean", default=True, doc="A flag.")
    text: str | None = option("text", "string", default=None, doc="A text.")
    size_bytes: int = option("size.bytes", "int", default=10, at_least=1, at_most=100, doc="Size.")
    short_one: int = option("short.one", "short", default=3, doc="A short one.")
    time_ms: int = option("time.ms", "long", default=5, at_least=1, besides=(-1,), doc="A time.")
    ratio: float = option("ratio", "double", default=0.5, at_least=0, at_most=1, doc="A share.")
    names: tuple[str, ...] = option("names", "list", default=("a",), doc="Names.")
    policy: tuple[str, ...] = option(
        "policy", "list", default=("delete",), choices=("delete", "compact"), doc="A policy."
    )
    choice: str = option("choice", "string", default="x", choices=("x", "y"), doc="A choice.")
    plug_in: str | None = option("plug.in", "class", default=None, doc="A class.")
    secret: Password | None = option("secret", "password", default=None, doc="A secret.")
    later: int = option("later", "int", default=1, reserved="arrives later", doc="Later.")
    never: str = option("never", "string", default="", refused="is not there", doc="Never.")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", "false", False),
        ("flag", " TRUE ", True),
        ("flag", False, False),
        ("text", "  trimmed ", "trimmed"),
        ("text", None, None),
        ("size.bytes", "+7", 7),
        ("size.bytes", 7, 7),
        ("short.one", "-32768", -32768),
        ("time.ms", "-1", -1),
        ("time.ms", str(2**63 - 1), 2**63 - 1),
        ("ratio", "1", 1.0),
        ("ratio", "5e-1", 0.5),
        ("ratio", 1, 1.0),
        ("names", "a, b ,c", ("a", "b", "c")),
        ("names", "", ()),
        ("names", ["x", "y"], ("x", "y")),
        ("policy", "compact,delete", ("compact", "delete")),
        ("plug.in", "com.example.Thing", "com.example.Thing"),
        ("secret", "s3cret", Password("s3cret")),
    ],
)
def test_a_value_is_read_from_text_or_taken_as_it_is(name: str, text: object, value: Any) -> None:
    parsed = Sample.parse({name: text})
    assert parsed.value(name) == value
    assert type(parsed.value(name)) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("flag", "yes", "flag=yes: must be true or false"),
        ("flag", 1, "flag=1: must be true or false"),
        ("size.bytes", "0", "size.bytes=0: must be at least 1"),
        ("size.bytes", "101", "size.bytes=101: must be at most 100"),
        ("size.bytes", "1_0", "size.bytes=1_0: must be a whole number"),
        ("size.bytes", "ten", "size.bytes=ten: must be a whole number"),
        ("size.bytes", "1.0", "size.bytes=1.0: must be a whole number"),
        ("size.bytes", True, "size.bytes=True: must be a whole number"),
        ("size.bytes", None, "size.bytes=None: a value is required"),
        ("size.bytes", str(2**31), "must fit in 32 bits"),
        ("short.one", "32768", "must fit in 16 bits"),
        ("time.ms", str(2**63), "must fit in 64 bits"),
        ("time.ms", "0", "time.ms=0: must be at least 1, or -1"),
        ("ratio", "1.5", "ratio=1.5: must be at most 1"),
        ("ratio", "half", "ratio=half: must be a number"),
        ("ratio", "nan", "ratio=nan: must be a number"),
        ("names", 5, "names=5: must be a comma-separated list"),
        ("policy", "delete,shrink", "policy=delete,shrink: must be delete or compact"),
        ("choice", "z", "choice=z: must be x or y"),
        ("text", 5, "text=5: must be a string"),
        ("never", "on", "never=on: refused: is not there"),
    ],
)
def test_a_wrong_value_is_refused_by_name_value_and_bound(
    name: str, text: object, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Sample.parse({name: text})
    assert message in str(caught.value)


def test_a_refused_option_may_be_set_to_its_default() -> None:
    assert Sample.parse({"never": ""}).never == ""


def test_a_section_is_immutable_and_overrides_make_a_new_one() -> None:
    first = Sample.parse({"size.bytes": "20", "later": 1, "custom": "kept"})
    second = first.with_overrides({"ratio": "0.25"})
    assert (first.size_bytes, first.ratio) == (20, 0.5)
    assert (second.size_bytes, second.ratio) == (20, 0.25)
    assert second.unknown == {"custom": "kept"}
    for change in (
        lambda: setattr(first, "size_bytes", 5),
        lambda: setattr(first, "other", 5),
        lambda: delattr(first, "ratio"),
    ):
        with pytest.raises(AttributeError, match="immutable"):
            change()
    with pytest.raises(TypeError):
        first.given["size.bytes"] = "5"  # type: ignore[index]


def test_sections_are_equal_by_value() -> None:
    assert Sample.parse({"size.bytes": "20"}) == Sample.parse({"size.bytes": 20})
    assert hash(Sample.parse({"size.bytes": "20"})) == hash(Sample.parse({"size.bytes": 20}))
    assert Sample.parse({"size.bytes": "20"}) != Sample.parse({"size.bytes": "21"})


def test_secrets_are_not_shown() -> None:
    options = Sample.parse({"secret": "s3cret", "size.bytes": "20"})
    assert options.secret is not None
    assert options.secret.value == "s3cret"
    shown = f"{options!r} {options.secret!r} {options.secret} {options.warnings()}"
    assert "s3cret" not in shown
    assert "size.bytes=20" in shown
    assert Sample.options["secret"].text(options.secret) is None
    failed = Option.error(Sample.options["secret"], "s3cret", "wrong")
    assert str(failed) == "secret=[hidden]: wrong"


def test_warnings_name_what_is_unknown_and_what_has_no_effect() -> None:
    options = Sample.parse({"size.byte": "5", "quite.other": "1", "later": "2", "flag": "false"})
    assert options.warnings() == [
        "size.byte: no such option; did you mean size.bytes?",
        "quite.other: no such option",
        "later is set, but has no effect: arrives later",
    ]
    assert Sample.parse({"later": "1"}).warnings() == []


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_survive_their_text(value: int) -> None:
    declared = option("any", "long", default=0, doc="Any.")
    assert declared.parse(declared.text(value)) == value


@given(st.floats(allow_nan=False))
def test_numbers_survive_their_text(value: float) -> None:
    declared = option("any", "double", default=0.0, doc="Any.")
    assert declared.parse(declared.text(value)) == value


def test_texts_are_those_that_kafka_shows() -> None:
    double = option("any", "double", default=0.0, doc="Any.")
    assert double.text(1.7976931348623157e308) == "1.7976931348623157E308"
    assert double.text(0.5) == "0.5"
    assert Sample.options["flag"].text(True) == "true"
    assert Sample.options["names"].text(("a", "b")) == "a,b"


def test_kinds_have_the_numbers_of_the_protocol() -> None:
    names = ["boolean", "string", "int", "short", "long", "double", "list", "class", "password"]
    assert {kind.name.lower(): kind.value for kind in Kind} == {
        name: number for number, name in enumerate(["object", *names])
    }


def test_an_attribute_is_the_snake_case_of_the_name() -> None:
    assert attribute_name("log.segment.bytes") == "log_segment_bytes"
    assert attribute_name("zookeeper.clientCnxnSocket") == "zookeeper_client_cnxn_socket"


def test_a_value_is_a_plain_attribute_of_the_instance() -> None:
    """Hot paths read options: no descriptor of the class may stand in between."""
    options = Sample.parse({})
    assert "size_bytes" in vars(options)
    assert not hasattr(Sample, "size_bytes")


def test_importing_the_options_stays_light() -> None:
    """Every command pays for this import; these modules alone would double it."""
    heavy = ["asyncio", "dataclasses", "difflib", "inspect", "socket", "ssl"]
    code = (
        "import sys, barnabas.config.sources; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"


def test_options_without_effect_are_declared_as_rows_of_a_table() -> None:
    class Old(Section):
        _without_effect = reserved(
            """
            old.count   int:1..9        3    broker  JAVA   How many; 3 is many.
            old.share   double:0.5..    0.8  no      KRAFT  Which part.
            old.names   list            []   no      JAVA   Who.
            old.name    string          -    no      JAVA   Who else.
            """
        )

    count, share, names, name = Old.options.values()
    assert (count.name, count.attribute, count.kind) == ("old.count", "old_count", Kind.INT)
    assert (count.default, count.at_least, count.at_most, count.dynamic) == (3, 1, 9, "broker")
    assert (count.reserved, count.doc) == (reasons.JAVA, "How many; 3 is many.")
    assert (share.default, share.at_least, share.at_most, share.dynamic) == (0.8, 0.5, None, "no")
    assert (names.default, name.default) == ((), None)
    assert not hasattr(Old, "_without_effect")
    assert Old.parse({"old.count": "4"}).warnings() == [
        f"old.count is set, but has no effect: {reasons.JAVA}"
    ]
