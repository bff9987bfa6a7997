"""Replicas on a broker: who leads, which are in sync, how far followers are behind.

What is about a partition is exposed by its leader, so that a sum over the brokers counts each
partition once.
"""

from barnabas.metrics.metric import Kind, Metric

_MANAGER = "kafka.server:type=ReplicaManager,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,name="
PARTITION = ("topic", "partition")


def _count(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_replicamanager_{name.lower()}", Kind.GAUGE, help, bean=_MANAGER + name
    )


def _meter(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_replicamanager_{name.lower()}_total",
        Kind.COUNTER,
        help,
        bean=f"{_MANAGER}{name}PerSec",
    )


def _of_fetchers(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_replicafetchermanager_{name.lower()}",
        Kind.GAUGE,
        help,
        ("clientId",),
        bean=_FETCHERS + name,
    )


def _of_partition(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_cluster_partition_{name.lower()}",
        Kind.GAUGE,
        help,
        PARTITION,
        bean=f"kafka.cluster:type=Partition,name={name}",
    )


LEADERS = _count("LeaderCount", "Partitions that this broker leads.")
PARTITIONS = _count("PartitionCount", "Replicas that this broker has, led or followed.")
UNDER_REPLICATED = _count(
    "UnderReplicatedPartitions", "Led partitions with a replica that is not in sync."
)
UNDER_MIN_ISR = _count(
    "UnderMinIsrPartitionCount",
    "Led partitions with fewer in-sync replicas than min.insync.replicas: acks=all is rejected.",
)
AT_MIN_ISR = _count(
    "AtMinIsrPartitionCount",
    "Led partitions with exactly min.insync.replicas in sync: none more may be lost.",
)
OFFLINE_REPLICAS = _count(
    "OfflineReplicaCount", "Replicas of this broker in failed directories, or with damaged logs."
)
REASSIGNING = _count("ReassigningPartitions", "Led partitions that are being reassigned.")
PRODUCER_IDS = _count(
    "ProducerIdCount", "Idempotent and transactional producers that led partitions remember."
)
LATE_TRANSACTIONS = _count(
    "PartitionsWithLateTransactionsCount",
    "Led partitions with a transaction that is open for longer than transaction.max.timeout.ms "
    "and five minutes.",
)
ISR_SHRINKS = _meter(
    "IsrShrinks", "How often the ISR of a led partition lost a replica, also by a failed broker."
)
ISR_EXPANDS = _meter("IsrExpands", "How often a replica joined the ISR of a led partition.")
FAILED_ISR_UPDATES = _meter(
    "FailedIsrUpdates", "ISR changes that the controller rejected, for a reason of the partition."
)
ISR_CHANGES = Metric(
    "barnabas_isr_changes_total",
    Kind.COUNTER,
    "ISR changes by cause. The leader counts those that it proposed (lag-time, caught-up), the "
    "controller those that it made.",
    ("change", "cause"),
)

UNDER_REPLICATED_OF = _of_partition("UnderReplicated", "Whether a replica is not in sync.")
UNDER_MIN_ISR_OF = _of_partition(
    "UnderMinIsr", "Whether fewer replicas are in sync than min.insync.replicas demands."
)
AT_MIN_ISR_OF = _of_partition(
    "AtMinIsr", "Whether exactly as many replicas are in sync as min.insync.replicas demands."
)
REPLICAS_OF = _of_partition(
    "ReplicasCount", "Replicas, without those that a reassignment is adding."
)
IN_SYNC_OF = _of_partition("InSyncReplicasCount", "Replicas in sync, the leader included.")
STABLE_LAG_OF = _of_partition(
    "LastStableOffsetLag",
    "Offsets between the last stable offset and the high watermark: held back by transactions.",
)

MAX_LAG = _of_fetchers(
    "MaxLag", "The most records by which a followed partition is behind its leader's watermark."
)
MIN_FETCH_RATE = _of_fetchers(
    "MinFetchRate", "Fetches per second of the slowest replica fetcher, over the last minute."
)
FAILED_PARTITIONS = _of_fetchers(
    "FailedPartitionsCount", "Followed partitions whose last records could not be applied."
)
DEAD_FETCHERS = _of_fetchers("DeadThreadCount", "Replica fetchers that crashed.")
FOLLOWER_LAG = Metric(
    "kafka_server_fetcherlagmetrics_consumerlag",
    Kind.GAUGE,
    "Records by which a followed partition is behind its leader's high watermark.",
    ("clientId", *PARTITION),
    bean="kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
)
