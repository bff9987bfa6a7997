"""Classes that programs for aiokafka subclass: token providers, and rebalance listeners."""

from __future__ import annotations

from abc import ABC, abstractmethod

from barnabas.consumer.group.callbacks import ConsumerRebalanceListener

__all__ = ["AbstractTokenProvider", "ConsumerRebalanceListener"]


class AbstractTokenProvider(ABC):
    """Provides the tokens of OAUTHBEARER, as `sasl_oauth_token_provider`.

    It is called whenever a connection is opened or a session is renewed, so it should cache a token
    for as long as it is valid. A plain function, or any object with these methods, works as well.
    """

    @abstractmethod
    async def token(self) -> str:
        """Return a token that is valid now."""

    def extensions(self) -> dict[str, str]:
        """Return names and values that are sent along with the token."""
        return {}
