"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802): both sides prove that they know the password.

The arithmetic is scramp's. The broker's proof is checked: one that does not know the password is
rejected like a wrong password would be.
"""

from __future__ import annotations

from barnabas.client.errors import AuthenticationFailedError
from barnabas.model.errors import ConfigError


class Scram:
    """first message → salt and count → our proof → the broker's proof."""

    def __init__(self, mechanism: str, username: str, password: str) -> None:
        from scramp import ScramClient, ScramException

        self._mechanism = mechanism
        try:
            self._client = ScramClient([mechanism], username, password)
        except ScramException as failure:
            raise ConfigError(
                f"sasl.plain.username and sasl.plain.password cannot be used with {mechanism}: "
                f"{failure}"
            ) from None
        self._proved = False
        self.done = False

    async def first(self) -> bytes:
        return self._text(self._client.get_client_first())

    def next(self, challenge: bytes) -> bytes:
        from scramp import ScramException

        try:
            if not self._proved:
                self._client.set_server_first(challenge.decode())
                self._proved = True
                return self._text(self._client.get_client_final())
            self._client.set_server_final(challenge.decode())
        except (ScramException, ValueError) as failure:
            raise AuthenticationFailedError(
                f"the broker could not prove that it knows the password ({self._mechanism}): "
                f"{failure}"
            ) from failure
        self.done = True
        return b""

    @staticmethod
    def _text(message: str) -> bytes:
        return message.encode()
