"""The controller. What is about the cluster is 0 on all brokers but the active one."""

from barnabas.metrics.metric import Kind, Metric


def _of_cluster(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_controller_kafkacontroller_{name.lower()}",
        Kind.GAUGE,
        help,
        bean=f"kafka.controller:type=KafkaController,name={name}",
    )


def _timer(state: str, help: str) -> Metric:
    return Metric(
        f"kafka_controller_controllerstats_{state.lower()}rateandtimems",
        Kind.QUANTILES,
        help,
        bean=f"kafka.controller:type=ControllerStats,name={state}RateAndTimeMs",
        scale=0.001,
    )


ACTIVE = _of_cluster("ActiveControllerCount", "Whether this broker is the controller.")
OFFLINE_PARTITIONS = _of_cluster("OfflinePartitionsCount", "Partitions without a leader.")
TOPICS = _of_cluster("GlobalTopicCount", "Topics of the cluster.")
PARTITIONS = _of_cluster("GlobalPartitionCount", "Partitions of the cluster.")
NOT_PREFERRED = _of_cluster(
    "PreferredReplicaImbalanceCount", "Partitions that are not led by their preferred replica."
)
STATE = _of_cluster(
    "ControllerState",
    "What the controller is doing, as Kafka numbers it: 0 idle, 1 taking over, 2 brokers changed, "
    "3 topics changed, 4 deleting topics, 5 reassigning, 6 and 7 balancing leaders, "
    "8 a broker shuts down, 9 an ISR changes, 10 a broker responded, 11 a disk failed, "
    "13 unclean elections were allowed.",
)
TOPICS_TO_DELETE = _of_cluster("TopicsToDeleteCount", "Topics whose deletion is not complete.")
REPLICAS_TO_DELETE = _of_cluster(
    "ReplicasToDeleteCount", "Replicas of deleted topics that brokers have yet to delete."
)
TOPICS_INELIGIBLE = _of_cluster(
    "TopicsIneligibleToDeleteCount",
    "Topics whose deletion waits for a broker, a disk or a reassignment.",
)
REPLICAS_INELIGIBLE = _of_cluster(
    "ReplicasIneligibleToDeleteCount",
    "Replicas of deleted topics that could not be deleted; retried when their broker returns.",
)
ACTIVE_BROKERS = _of_cluster("ActiveBrokerCount", "Brokers that are registered.")
FENCED_BROKERS = _of_cluster(
    "FencedBrokerCount", "Brokers that may not lead; without KRaft there are none."
)
EPOCH = Metric(
    "barnabas_controller_epoch",
    Kind.GAUGE,
    "The epoch of the controller that sent the last request to this broker.",
)

UNCLEAN_ELECTIONS = Metric(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    Kind.COUNTER,
    "Leaders that were elected without being in sync: records may be lost.",
    bean="kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
)
ELECTIONS = Metric(
    "barnabas_elections_total", Kind.COUNTER, "Partition leaders elected, by cause.", ("cause",)
)

CONTROLLER_CHANGE_TIME = _timer(
    "ControllerChange", "Milliseconds in which a new controller loaded the cluster's state."
)
LEADER_ELECTION_TIME = _timer(
    "LeaderElection",
    "Milliseconds in which the controller handled brokers that joined or left, with all elections.",
)
TOPIC_CHANGE_TIME = _timer("TopicChange", "Milliseconds in which topics were set up.")
TOPIC_DELETION_TIME = _timer("TopicDeletion", "Milliseconds per step of deleting topics.")
REASSIGNMENT_TIME = _timer("PartitionReassignment", "Milliseconds per request to reassign.")
AUTO_BALANCE_TIME = _timer(
    "AutoLeaderBalance", "Milliseconds per automatic election of preferred replicas."
)
MANUAL_BALANCE_TIME = _timer("ManualLeaderBalance", "Milliseconds per election on request.")
SHUTDOWN_TIME = _timer(
    "ControlledShutdown", "Milliseconds in which leaders were moved from a broker that stops."
)
ISR_CHANGE_TIME = _timer("IsrChange", "Milliseconds per request of a leader to change ISRs.")
RESPONSE_TIME = _timer(
    "LeaderAndIsrResponseReceived", "Milliseconds per response of a broker to its new roles."
)
DISK_TIME = _timer("LogDirChange", "Milliseconds in which failed disks were handled.")
UNCLEAN_ENABLE_TIME = _timer(
    "UncleanLeaderElectionEnable",
    "Milliseconds in which leaders were elected after unclean elections had been allowed.",
)

EVENT_QUEUE_SIZE = Metric(
    "kafka_controller_controllereventmanager_eventqueuesize",
    Kind.GAUGE,
    "Events that wait for the controller.",
    bean="kafka.controller:type=ControllerEventManager,name=EventQueueSize",
)
EVENT_QUEUE_TIME = Metric(
    "kafka_controller_controllereventmanager_eventqueuetimems",
    Kind.QUANTILES,
    "Milliseconds for which an event waited for the controller.",
    bean="kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs",
    scale=0.001,
)
TOTAL_QUEUE_SIZE = Metric(
    "kafka_controller_controllerchannelmanager_totalqueuesize",
    Kind.GAUGE,
    "Requests of the controller that wait for a broker.",
    bean="kafka.controller:type=ControllerChannelManager,name=TotalQueueSize",
)
QUEUE_SIZE = Metric(
    "kafka_controller_controllerchannelmanager_queuesize",
    Kind.GAUGE,
    "Requests of the controller that wait for one broker.",
    ("broker_id",),
    bean="kafka.controller:type=ControllerChannelManager,name=QueueSize",
)
