"""What programs for aiokafka subclass: providers of tokens, and rebalance listeners."""

from __future__ import annotations

from abc import ABC, abstractmethod

from barnabas.consumer.group.callbacks import ConsumerRebalanceListener

__all__ = ["AbstractTokenProvider", "ConsumerRebalanceListener"]


class AbstractTokenProvider(ABC):
    """Gives the tokens of OAUTHBEARER, as `sasl_oauth_token_provider`.

    It is asked whenever a connection is opened or a session is renewed, so it should keep a token
    for as long as that is good. A plain function, or any object with these methods, serves as well.
    """

    @abstractmethod
    async def token(self) -> str:
        """Return a token that is good now."""

    def extensions(self) -> dict[str, str]:
        """Return names and values that are sent beside the token."""
        return {}
