"""Which topics a mirror copies, and what they are called on the target."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.model.errors import InvalidValueError
from barnabas.model.patterns import Pattern, compile_pattern


class Selection:
    """Topics whose whole names match a pattern, without some others and without internal ones."""

    def __init__(
        self, topics: Iterable[str], exclude: Iterable[str] = (), *, prefix: str = ""
    ) -> None:
        """Compile patterns (any of them may match); `prefix` goes before names on the target."""
        self._wanted = [_compiled("--topics", text) for text in topics]
        self._excluded = [_compiled("--exclude", text) for text in exclude]
        if not self._wanted:
            raise InvalidValueError("--topics: at least one pattern of names is needed")
        self.prefix = prefix

    def wants(self, name: str, *, internal: bool = False) -> bool:
        """Tell whether a topic of the source is copied."""
        # Names with two underscores are what brokers and tools keep for themselves.
        if internal or name.startswith(("__", TOPIC_PREFIX)):
            return False
        return any(pattern.fullmatch(name) for pattern in self._wanted) and not any(
            pattern.fullmatch(name) for pattern in self._excluded
        )

    def target_name(self, name: str) -> str:
        """Return what a topic of the source is called on the target."""
        return self.prefix + name


def _compiled(option: str, text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except InvalidValueError as failure:
        raise InvalidValueError(f"{option}: {failure}") from failure
