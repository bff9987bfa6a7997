"""The console's log-in: a name and a password, checked by the listeners' own SASL mechanisms.

Both sides of the conversation are here, since the browser sends the password. It is used and
forgotten: no session keeps it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from barnabas.broker.loop import offload
from barnabas.client.errors import AuthenticationFailedError
from barnabas.metrics.catalogue.network import (
    FAILED_AUTHENTICATIONS,
    NETWORK_PROCESSOR,
    SUCCESSFUL_AUTHENTICATIONS,
)
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError
from barnabas.model.visitor import LoginRejected
from barnabas.security.audit import AuditLog
from barnabas.security.sasl.exchange import Login, NewExchange, Rejected, Step, Work

LISTENER = "console"
WRONG = "The name or the password is wrong."
NAME_MAX = 256
PASSWORD_MAX = 1024
STEPS_MAX = 4


class LogIn:
    """Checks names and passwords."""

    def __init__(
        self,
        mechanisms: Callable[[], Mapping[str, NewExchange]],
        wall_ms: Callable[[], int],
        delay_ms: Callable[[], int],
        audit: AuditLog,
        metrics: Registry,
    ) -> None:
        """A failure is told after `delay_ms`."""
        self._mechanisms = mechanisms
        self._wall_ms = wall_ms
        self._delay_ms = delay_ms
        self._audit = audit
        self._metrics = metrics

    async def check(self, name: str, password: str, host: str) -> Login:
        """Return the login if one of the mechanisms accepts it; raise LoginRejected."""
        why, tried = "no name, no password, or one that is too long", ""
        mechanisms = self._mechanisms()
        if 0 < len(name) <= NAME_MAX and 0 < len(password) <= PASSWORD_MAX:
            for tried, begin in mechanisms.items():
                try:
                    login = await self._converse(tried, begin, name, password)
                except (Rejected, AuthenticationFailedError, ConfigError) as failure:
                    why = str(failure)
                    continue
                self._audit.login(f"User:{login.name}", host, LISTENER, tried, again=False)
                self._metrics.counter(SUCCESSFUL_AUTHENTICATIONS, LISTENER, NETWORK_PROCESSOR).add()
                return login
        self._audit.failed_login(host, LISTENER, tried, why, again=False)
        self._metrics.counter(FAILED_AUTHENTICATIONS, LISTENER, NETWORK_PROCESSOR).add()
        await asyncio.sleep(self._delay_ms() / 1000)
        raise LoginRejected(WRONG)

    async def _converse(
        self, mechanism: str, begin: NewExchange, name: str, password: str
    ) -> Login:
        """Let a client of the mechanism talk to its server."""
        # Imported here: a broker whose console is off need not have them in memory.
        from barnabas.client.sasl.plain import Plain
        from barnabas.client.sasl.scram import Scram

        if mechanism == "PLAIN" and "\0" in name + password:
            raise Rejected("a NUL in the name or the password", WRONG)
        client = (
            Plain(name, password)
            if mechanism == "PLAIN"
            else Scram(mechanism, name, password, os.urandom)
        )
        server = begin()
        message = await client.first()
        for _ in range(STEPS_MAX):
            step: Step | Work = server.step(message, self._wall_ms())
            if isinstance(step, Work):
                step = await offload(None, step.run)
            if step.login is not None:
                return step.login
            message = await client.next(step.answer or b"")
        raise Rejected("the exchange does not end", WRONG)
