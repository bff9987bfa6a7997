"""Whether a broker is ready to serve clients, and if not, why."""

from __future__ import annotations

from collections.abc import Callable


class Health:
    """The readiness of one broker; it is alive as long as anything here answers."""

    def __init__(self) -> None:
        self._phase: str | None = "starting"
        self._checks: list[Callable[[], str | None]] = []

    def entered(self, phase: str) -> None:
        """Record what the broker does instead of serving: it starts, or stops."""
        self._phase = phase

    def serving(self, *checks: Callable[[], str | None]) -> None:
        """Record that the broker serves; each check returns why it cannot now, or None."""
        self._phase = None
        self._checks = list(checks)

    @property
    def reason(self) -> str | None:
        """Why the broker is not ready; None if it is."""
        if self._phase is not None:
            return self._phase
        for check in self._checks:
            why = check()
            if why is not None:
                return why
        return None
