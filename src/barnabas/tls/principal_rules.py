"""Rules that turn a certificate's subject into a user name (`ssl.principal.mapping.rules`).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole subject decides: every match of the pattern is
replaced, `$1` is a group, and `L` or `U` changes the case. `DEFAULT` is the subject itself. A
subject that no rule matches has no name, and its connection is closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.model.errors import ConfigError

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_REFERENCE = re.compile(r"\\(?P<escaped>.)|\$\{(?P<name>\w+)\}|\$(?P<digits>\d+)|(?P<text>.)", re.S)


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    pieces: tuple[str | int, ...]
    """The replacement: strings, and numbers of groups."""
    case: str

    def apply(self, subject: str) -> str | None:
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self._replacement, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replacement(self, match: re.Match[str]) -> str:
        return "".join(
            piece if isinstance(piece, str) else match[piece] or "" for piece in self.pieces
        )


class PrincipalRules:
    """The parsed rules, in their order."""

    def __init__(self, text: str) -> None:
        """Parse rules; raise ConfigError for one that is malformed."""
        self._rules: list[_Rule | None] = []  # None is DEFAULT
        position, text = 0, text.strip()
        while position < len(text):
            match = _RULE.match(text, position)
            if match is None:
                raise _invalid(
                    text[position:].strip(), "must be DEFAULT or RULE:pattern/name/[L|U]"
                )
            position = match.end()
            self._rules.append(None if match["default"] else _rule(match))

    def name_of(self, subject: str) -> str | None:
        """Return the user name of a subject; None if no rule matches."""
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        return None


def _rule(match: re.Match[str]) -> _Rule:
    # Java writes named groups without a P.
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", match["pattern"])
    try:
        compiled = re.compile(pattern)
    except re.error as failure:
        raise _invalid(match[0].strip(), f"the pattern is invalid: {failure}") from None
    return _Rule(compiled, tuple(_pieces(match["replacement"], compiled)), match["case"])


def _pieces(replacement: str, pattern: re.Pattern[str]) -> list[str | int]:
    """Parse a replacement: `$n` is a group, and takes further digits if such a group exists."""
    pieces: list[str | int] = []
    for match in _REFERENCE.finditer(replacement):
        digits, name = match["digits"], match["name"]
        if digits is not None:
            if int(digits[0]) > pattern.groups:
                pieces.append(match[0])
                continue
            length = 1
            while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
                length += 1
            pieces += [int(digits[:length]), digits[length:]]
        elif name is not None:
            if name not in pattern.groupindex:
                raise _invalid(replacement, f"the pattern has no group {name}")
            pieces.append(pattern.groupindex[name])
        else:
            pieces.append(match["escaped"] or match["text"])
    return pieces


def _invalid(rule: str, why: str) -> ConfigError:
    return ConfigError(f"ssl.principal.mapping.rules={rule}: {why}")
