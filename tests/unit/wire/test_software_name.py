"""Names of client software: letters and digits, with hyphens and dots inside."""

from __future__ import annotations

import pytest

from barnabas.wire.software_name import is_software_name


@pytest.mark.parametrize("text", ["a", "librdkafka", "kafka-python", "3.9.0", "a-.b"])
def test_names_and_versions(text: str) -> None:
    assert is_software_name(text)


@pytest.mark.parametrize("text", ["", "-a", "a.", "a b", "ä", "a\n", "a/b"])
def test_other_texts(text: str) -> None:
    assert not is_software_name(text)
