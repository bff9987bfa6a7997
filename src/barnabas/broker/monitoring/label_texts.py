"""The label texts of many series, kept from one scrape to the next."""

from __future__ import annotations

from collections.abc import Hashable

from barnabas.metrics.metric import label_text


class LabelTexts:
    """Texts by the values of their labels; those that one scrape did not use are dropped."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._known: dict[Hashable, str] = {}
        self._used: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def begin(self) -> None:
        """Begin a scrape."""
        self._known, self._used = self._used or self._known, {}

    def of(self, values: tuple[object, ...]) -> str:
        """Return the text for the values of the labels."""
        text = self._used.get(values)
        if text is None:
            text = self._known.get(values)
            if text is None:
                text = label_text(self._names, tuple(map(str, values)))
            self._used[values] = text
        return text
