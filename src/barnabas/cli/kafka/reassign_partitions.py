"""`kafka-reassign-partitions`: move partitions between brokers and log directories."""

from __future__ import annotations

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.kafka.integers import whole_number

FAILS_ON_STDOUT = True

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
EVERYWHERE = ("bootstrap-server", "command-config")
PERMITTED = {
    "generate": ("disable-rack-aware", "zookeeper"),
    "execute": (
        "additional",
        "disallow-replication-factor-change",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "zookeeper",
    ),
    "verify": ("preserve-throttles", "zookeeper"),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
ONLY_BROKERS = (
    "additional",
    "disallow-replication-factor-change",
    "cancel",
    "command-config",
    "replica-alter-log-dirs-throttle",
    "list",
    "timeout",
)
"""What ZooKeeper cannot do."""

FLAGS = Flags(
    "Move partitions between brokers and log directories.",
    (
        BOOTSTRAP,
        Flag("--bootstrap-controller", "HOST:PORT[,...]", "for --cancel and --list"),
        Flag("--zookeeper", "HOST:PORT[/CHROOT]", "deprecated: use --bootstrap-server"),
        COMMAND_CONFIG,
        Flag("--generate", help="propose an assignment of topics to brokers"),
        Flag("--execute", help="start a reassignment"),
        Flag("--verify", help="show its progress; remove its throttles once it is done"),
        Flag("--cancel", help="cancel it"),
        Flag("--list", help="list reassignments in progress"),
        Flag("--topics-to-move-json-file", "FILE", '{"topics":[{"topic":"t"}],"version":1}'),
        Flag("--broker-list", "ID[,...]", "the brokers to move them to"),
        Flag("--disable-rack-aware", help="ignore the racks of brokers"),
        Flag(
            "--reassignment-json-file",
            "FILE",
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}],'
            '"version":1}',
        ),
        Flag("--throttle", "BYTES", "limit between brokers, per second", whole_number, -1),
        Flag(
            "--replica-alter-log-dirs-throttle",
            "BYTES",
            "limit between directories, per second",
            whole_number,
            -1,
        ),
        Flag("--timeout", "MS", "for moves between directories to begin", whole_number, 10_000),
        Flag("--additional", help="although other reassignments are in progress"),
        Flag("--disallow-replication-factor-change", help="reject other numbers of replicas"),
        Flag("--preserve-throttles", help="do not remove throttles"),
    ),
    one_of=(ACTIONS,),
    excludes={"bootstrap-controller": ("bootstrap-server",)},
)


def run(given: Given) -> int:
    """Check what cannot stand together, and act through a broker, or through ZooKeeper."""
    action = next(key for key in ACTIONS if key in given)
    if "bootstrap-controller" in given and action in ("cancel", "list"):
        given.values["bootstrap-server"] = given.values.pop("bootstrap-controller")
    _check(action, given)
    if "bootstrap-server" in given:
        if "zookeeper" in given:
            print(
                "Warning: ignoring deprecated --zookeeper option because --bootstrap-server was "
                "specified.  The --zookeeper option will be removed in a future version of Kafka."
            )
        from barnabas.cli.kafka.reassignment_by_brokers import act
    else:
        from barnabas.cli.kafka.reassignment_by_tree import act
        from barnabas.cli.kafka.tree import DEPRECATED

        print(DEPRECATED)
    return act(action, given)


def _check(action: str, given: Given) -> None:
    if "bootstrap-server" not in given and "zookeeper" not in given:
        raise UsageError("Please specify --bootstrap-server")
    for key in REQUIRED[action]:
        if key not in given:
            raise UsageError(f'Missing required argument "[{key}]"')
    permitted = {action, *REQUIRED[action], *PERMITTED[action], *EVERYWHERE}
    for key in given.values:
        if key not in permitted:
            raise UsageError(f'Option "[{key}]" can\'t be used with action "[{action}]"')
    if "bootstrap-server" not in given:
        for key in ONLY_BROKERS:
            if key in given:
                raise UsageError(f'You must specify --bootstrap-server when using "[{key}]"')
