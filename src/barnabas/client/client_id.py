"""Default client ids: unique in their process, in the format of Kafka's clients.

Brokers show them in logs, groups and quotas, so they must distinguish clients. Threads may ask at
the same time: `next` of an `itertools.count` is atomic.
"""

from __future__ import annotations

from itertools import count

from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.producer import ProducerOptions

_consumers = count(1)
_producers = count(1)
_admins = count(1)


def consumer_client_id(options: ConsumerOptions) -> str:
    """Return client.id, or `consumer-GROUP-N`; static members have their instance id as N."""
    if options.client_id:
        return options.client_id
    if options.group_id is None:
        return f"consumer-{next(_consumers)}"
    return f"consumer-{options.group_id}-{options.group_instance_id or next(_consumers)}"


def producer_client_id(options: ProducerOptions) -> str:
    """Return client.id, or `producer-N`; transactional producers have their id as N."""
    return options.client_id or f"producer-{options.transactional_id or next(_producers)}"


def admin_client_id(options: AdminOptions) -> str:
    """Return client.id, or `adminclient-N`."""
    return options.client_id or f"adminclient-{next(_admins)}"
