"""Topics: how they are made, removed and led."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import JAVA, KRAFT


class TopicsOptions(Section):
    """Topics: how they are made, removed and led."""

    auto_create_topics_enable: bool = option(
        "auto.create.topics.enable",
        "boolean",
        default=True,
        doc="Whether asking for a topic that does not exist creates it.",
    )
    delete_topic_enable: bool = option(
        "delete.topic.enable",
        "boolean",
        default=True,
        doc="Whether topics can be deleted.",
    )
    num_partitions: int = option(
        "num.partitions",
        "int",
        default=1,
        at_least=1,
        doc="Partitions of a topic when its creator does not say.",
    )
    default_replication_factor: int = option(
        "default.replication.factor",
        "int",
        default=1,
        at_least=1,
        doc="Replicas of a topic when its creator does not say.",
    )
    min_insync_replicas: int = option(
        "min.insync.replicas",
        "int",
        default=1,
        at_least=1,
        dynamic="cluster",
        doc="Replicas that must have a record before acks=all is answered.",
    )
    unclean_leader_election_enable: bool = option(
        "unclean.leader.election.enable",
        "boolean",
        default=False,
        dynamic="cluster",
        doc="Whether a replica that lags may lead when no other is left, losing records.",
    )
    auto_leader_rebalance_enable: bool = option(
        "auto.leader.rebalance.enable",
        "boolean",
        default=True,
        doc="Whether leadership goes back to preferred replicas by itself.",
    )
    leader_imbalance_check_interval_seconds: int = option(
        "leader.imbalance.check.interval.seconds",
        "long",
        default=300,
        at_least=1,
        doc="How often the balance of leaders is checked.",
    )
    leader_imbalance_per_broker_percentage: int = option(
        "leader.imbalance.per.broker.percentage",
        "int",
        default=10,
        at_least=0,
        doc="Share of misplaced leaders at which they are moved back.",
    )
    create_topic_policy_class_name: str | None = option(
        "create.topic.policy.class.name",
        "class",
        default=None,
        refused=JAVA,
        doc="Class that may refuse the creation of topics.",
    )
    alter_config_policy_class_name: str | None = option(
        "alter.config.policy.class.name",
        "class",
        default=None,
        refused=JAVA,
        doc="Class that may refuse changes of options.",
    )
    eligible_leader_replicas_enable: bool = option(
        "eligible.leader.replicas.enable",
        "boolean",
        default=False,
        reserved=KRAFT,
        doc="Whether replicas that left the ISR safely may still lead.",
    )
