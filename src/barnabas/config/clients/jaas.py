"""Credentials in the form that Java clients take, in one line:

org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";
"""

from __future__ import annotations

import re

from barnabas.model.errors import ConfigError

_ENTRY = re.compile(r"""(\w[\w.-]*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)\s*""")


def jaas_options(text: str) -> dict[str, str]:
    """Return the options of a JAAS line; error messages contain no secrets."""
    head = re.match(r"\s*[\w.$]+\s+(required|requisite|sufficient|optional)\s*", text)
    body = text.strip()
    if head is None or not body.endswith(";"):
        raise ConfigError(
            'sasl.jaas.config=[hidden]: must look like …LoginModule required name="value" …;'
        )
    position = head.end()
    found: dict[str, str] = {}
    while (entry := _ENTRY.match(text, position)) is not None:
        name, value = entry.groups()
        if value[0] in "\"'":
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        found[name] = value
        position = entry.end()
    if text[position:].strip() != ";":
        raise ConfigError(
            "sasl.jaas.config=[hidden]: cannot be parsed after "
            + (f"the option {list(found)[-1]}" if found else "its first words")
        )
    return found
