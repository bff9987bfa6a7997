"""The callbacks of a subscription: partitions were assigned, revoked or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.compat.confluent_kafka.partitions import from_key
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.model import ids

if TYPE_CHECKING:  # an import cycle: consumers have listeners
    from barnabas.compat.confluent_kafka.consumer import Consumer

RebalanceCallback = Callable[..., Any]


class Rebalancing(ConsumerRebalanceListener):
    """Calls the functions given to `subscribe`, with the consumer and a list of partitions."""

    def __init__(
        self,
        consumer: Consumer,
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        self._consumer = consumer
        self._on_assign = on_assign
        self._on_revoke = on_revoke
        self._on_lost = on_lost

    def on_partitions_assigned(self, assigned: set[ids.TopicPartition]) -> None:
        if self._on_assign is not None:
            with self._consumer._rebalance():
                self._on_assign(self._consumer, [from_key(each) for each in sorted(assigned)])

    def on_partitions_revoked(self, revoked: set[ids.TopicPartition]) -> None:
        try:
            if self._on_revoke is not None:
                with self._consumer._rebalance():
                    self._on_revoke(self._consumer, [from_key(each) for each in sorted(revoked)])
        finally:
            self._consumer._given_up(revoked, commit=True)

    def on_partitions_lost(self, lost: set[ids.TopicPartition]) -> None:
        function = self._on_revoke if self._on_lost is None else self._on_lost
        try:
            if function is not None:
                with self._consumer._rebalance():
                    function(self._consumer, [from_key(each) for each in sorted(lost)])
        finally:
            self._consumer._given_up(lost, commit=False)
