"""Names of Kerberos principals as Kafka's principals: `sasl.kerberos.principal.to.local.rules`.

    DEFAULT                                  kafka/host1@EXAMPLE.COM is kafka in the default realm
    RULE:[2:$1@$0](.*@OTHER.COM)s/@.*//      kafka/h@OTHER.COM is kafka
    RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*///L  Bob@EXAMPLE.COM is bob

A rule is for names of so many components without the realm; it formats them ($0 is the realm),
must match the whole result, and replaces parts of it. The first rule that applies decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.model.errors import ConfigError, InvalidValueError

OPTION = "sasl.kerberos.principal.to.local.rules"
_RULE = re.compile(
    r"RULE:\[(?P<components>\d+):(?P<format>[^\]]*)\]"
    r"(?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<old>[^/]*)/(?P<new>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_NAME = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?@(?P<realm>[^/@]*)")


class _Rule(NamedTuple):
    components: int
    format: str
    match: re.Pattern[str] | None
    old: re.Pattern[str] | None
    new: str
    all: bool
    case: str

    def apply(self, parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != self.components:
            return None
        base = re.sub(r"\$(\d+)", lambda found: parts[int(found[1])], self.format)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.old is not None:
            base = self.old.sub(lambda _: self.new, base, count=0 if self.all else 1)
        return {"L": base.lower(), "U": base.upper()}.get(self.case, base)


class KerberosNames:
    """The rules of one broker; None stands for DEFAULT."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._rules = [None if rule == "DEFAULT" else _parsed(rule) for rule in rules]

    def short_name(self, principal: str, default_realm: str) -> str:
        """Return the name by which a principal is known; raise InvalidValueError without one."""
        match = _NAME.fullmatch(principal)
        if match is None:
            raise InvalidValueError(f"{principal!r} is not a Kerberos principal")
        parts = [match["realm"], match["service"]]
        if match["host"] is not None:
            parts.append(match["host"])
        for rule in self._rules:
            if rule is not None:
                name = rule.apply(parts)
            else:
                name = parts[1] if parts[0] == default_realm else None
            if name is not None:
                if re.search("[/@]", name):
                    raise InvalidValueError(f"{OPTION}: {principal!r} becomes {name!r}, not simple")
                return name
        raise InvalidValueError(f"{OPTION}: no rule applies to {principal!r}")


def _parsed(rule: str) -> _Rule:
    match = _RULE.fullmatch(rule)
    if match is None:
        raise ConfigError(f"{OPTION}={rule}: must be DEFAULT or RULE:[n:format](regex)s/from/to/")
    components = int(match["components"])
    if any(int(number) > components for number in re.findall(r"\$(\d+)", match["format"])):
        raise ConfigError(f"{OPTION}={rule}: has a number above {components} in its format")
    try:
        return _Rule(
            components,
            match["format"],
            re.compile(match["match"]) if match["match"] is not None else None,
            re.compile(match["old"]) if match["old"] is not None else None,
            match["new"] or "",
            match["all"] is not None,
            match["case"] or "",
        )
    except re.error as failure:
        raise ConfigError(f"{OPTION}={rule}: {failure}") from None
