"""Topics: creation, deletion and leadership."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import JAVA, KRAFT


class TopicsOptions(Section):
    """Topics: creation, deletion and leadership."""

    auto_create_topics_enable: bool = option(
        "auto.create.topics.enable",
        "boolean",
        default=True,
        doc="Whether requesting metadata of a missing topic creates it.",
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
        doc="Default number of partitions of a new topic.",
    )
    default_replication_factor: int = option(
        "default.replication.factor",
        "int",
        default=1,
        at_least=1,
        doc="Default replication factor of a new topic.",
    )
    min_insync_replicas: int = option(
        "min.insync.replicas",
        "int",
        default=1,
        at_least=1,
        dynamic="cluster",
        doc="In-sync replicas required for a write with acks=all.",
    )
    unclean_leader_election_enable: bool = option(
        "unclean.leader.election.enable",
        "boolean",
        default=False,
        dynamic="cluster",
        doc="Whether an out-of-sync replica may become leader as a last resort, losing records.",
    )
    auto_leader_rebalance_enable: bool = option(
        "auto.leader.rebalance.enable",
        "boolean",
        default=True,
        doc="Whether leadership is moved back to preferred replicas automatically.",
    )
    leader_imbalance_check_interval_seconds: int = option(
        "leader.imbalance.check.interval.seconds",
        "long",
        default=300,
        at_least=1,
        doc="How often the leader balance is checked.",
    )
    leader_imbalance_per_broker_percentage: int = option(
        "leader.imbalance.per.broker.percentage",
        "int",
        default=10,
        at_least=0,
        doc="Percentage of non-preferred leaders per broker that triggers a rebalance.",
    )
    create_topic_policy_class_name: str | None = option(
        "create.topic.policy.class.name",
        "class",
        default=None,
        refused=JAVA,
        doc="Policy class that can reject topic creation.",
    )
    alter_config_policy_class_name: str | None = option(
        "alter.config.policy.class.name",
        "class",
        default=None,
        refused=JAVA,
        doc="Policy class that can reject config changes.",
    )
    eligible_leader_replicas_enable: bool = option(
        "eligible.leader.replicas.enable",
        "boolean",
        default=False,
        reserved=KRAFT,
        doc="Whether eligible leader replicas (KIP-966) are used.",
    )
