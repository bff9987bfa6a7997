"""The membership that a consumer's options ask for."""

from __future__ import annotations

import random as random_module

from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.group.assignors import strategies
from barnabas.consumer.group.callbacks import call_directly
from barnabas.consumer.group.classic import ClassicMembership
from barnabas.consumer.group.consumer_protocol import ConsumerProtocolMembership
from barnabas.consumer.group.contract import Invoke, Membership, Wake
from barnabas.consumer.group.none import NoMembership
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.group.surroundings import Surroundings
from barnabas.consumer.subscription import Subscription
from barnabas.model.errors import ConfigError


def membership(
    cluster_client: ClusterClient,
    subscription: Subscription,
    options: ConsumerOptions,
    *,
    wake: Wake,
    invoke: Invoke = call_directly,
    random: random_module.Random | None = None,
) -> Membership:
    """Make the membership; it does nothing before `start`."""
    random = random or random_module.Random()
    if options.group_id is None:
        if options.group_instance_id is not None:
            raise ConfigError(
                f"group.instance.id={options.group_instance_id} needs a group: set group.id"
            )
        return NoMembership(
            cluster_client,
            subscription,
            invoke=invoke,
            exclude_internal_topics=options.exclude_internal_topics,
        )
    settings = GroupSettings.from_options(options)
    around = Surroundings(cluster_client, subscription, settings, invoke, wake, random)
    if options.group_protocol == "consumer":
        return ConsumerProtocolMembership(around)
    if options.group_remote_assignor is not None:
        raise ConfigError(
            f"group.remote.assignor={options.group_remote_assignor} needs group.protocol=consumer; "
            "classic groups use partition.assignment.strategy"
        )
    return ClassicMembership(
        around, strategies(options.partition_assignment_strategy, random.randrange)
    )
