"""What a membership works with: given to it once, by the consumer's core."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff
from barnabas.consumer.group.callbacks import call_directly
from barnabas.consumer.group.contract import Invoke, Wake
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Subscription


def _nobody_waits() -> None:
    """Wake nobody."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Brokers, subscription, settings, and the ways to the user."""

    cluster_client: ClusterClient
    subscription: Subscription
    settings: GroupSettings
    invoke: Invoke = call_directly
    wake: Wake = _nobody_waits
    random: random.Random = field(default_factory=random.Random)

    def backoff(self) -> Backoff:
        """Return the pauses between attempts."""
        return Backoff(
            self.random.random,
            initial_ms=self.settings.retry_backoff_ms,
            max_ms=self.settings.retry_backoff_ms_max,
        )


def now_ms() -> float:
    """Return the running loop's time."""
    return asyncio.get_running_loop().time() * 1000
