"""Names and texts of error codes; tests/compat compares them all with confluent-kafka's."""

from __future__ import annotations

from barnabas.compat.confluent_kafka.error_codes import _NAMES, _TEXTS, name_of, text_of


def test_names_and_texts() -> None:
    assert (name_of(-192), text_of(-192)) == ("_MSG_TIMED_OUT", "Local: Message timed out")
    assert (name_of(0), text_of(0)) == ("NO_ERROR", "Success")
    assert (name_of(-191), text_of(-191)) == ("_PARTITION_EOF", "Broker: No more messages")
    assert (name_of(-300), text_of(-300)) == ("ERR_-300?", "Err--300?")
    assert text_of(3).startswith("Broker: ")


def test_every_error_of_the_client_has_a_text() -> None:
    local = {code for code in _NAMES if code < -1}
    assert set(_TEXTS) == local - {-191}
