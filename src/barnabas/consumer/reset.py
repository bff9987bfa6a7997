"""Where to start if no offset is known: auto.offset.reset, and seeks to the ends of a log.

earliest | latest             the first record in the log | after the last one
none                          nowhere: raise
by_duration:PT1H              the first record that is not older than that (ISO 8601, KIP-1106)
smallest | largest            the names that earliest and latest once had
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from barnabas.model.errors import ConfigError
from barnabas.model.ids import EARLIEST, LATEST

_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)
_OLD_NAMES = {"smallest": "earliest", "largest": "latest"}


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """A way to find a position; `text` is the value of the option."""

    text: str
    duration_ms: int | None = None

    NONE: ClassVar[ResetPolicy]
    EARLIEST: ClassVar[ResetPolicy]
    LATEST: ClassVar[ResetPolicy]

    def __str__(self) -> str:
        return self.text

    @property
    def gives_up(self) -> bool:
        """Whether no position is chosen, so that the user gets an error."""
        return self.text == "none"

    def timestamp(self, now_ms: float) -> int:
        """Return the timestamp for ListOffsets."""
        assert not self.gives_up
        if self.duration_ms is not None:
            return max(0, int(now_ms) - self.duration_ms)
        return EARLIEST if self.text == "earliest" else LATEST


ResetPolicy.NONE = ResetPolicy("none")
ResetPolicy.EARLIEST = ResetPolicy("earliest")
ResetPolicy.LATEST = ResetPolicy("latest")


def parse_reset(text: str) -> ResetPolicy:
    """Parse the value of auto.offset.reset."""
    name = text.strip()
    name = _OLD_NAMES.get(name.lower(), name)
    if name.lower() in ("earliest", "latest", "none"):
        return ResetPolicy(name.lower())
    if name.lower().startswith(_BY_DURATION):
        duration_ms = _duration_ms(name[len(_BY_DURATION) :])
        if duration_ms is not None:
            return ResetPolicy(name, duration_ms)
    raise ConfigError(
        f"auto.offset.reset={text}: must be earliest, latest, none or by_duration:PnDTnHnMnS"
    )


def _duration_ms(text: str) -> int | None:
    """Return an ISO 8601 duration of days and smaller units; None if it is not one."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))
