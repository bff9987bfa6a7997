"""`barnabas zookeeper-security`: restrict the nodes of a running cluster, or open them again."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from barnabas.cli.arguments import assignment
from barnabas.cli.session import on_loop
from barnabas.model.errors import ConfigError

EXAMPLES = """\
examples:
  barnabas zookeeper-security secure --config server.properties
  barnabas zookeeper-security unsecure --config server.properties

The file is that of a broker: its zookeeper.connect, login and TLS options are used. Run `secure`
when all brokers have zookeeper.set.acl=true, and `unsecure` when none has. Kafka's name for this
command is zookeeper-security-migration.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument(
        "access",
        choices=("secure", "unsecure"),
        help="secure: only the brokers may change nodes, and read those with secrets; "
        "unsecure: everyone may",
    )
    parser.add_argument("--config", metavar="FILE", help="a broker's server.properties")
    parser.add_argument(
        "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="the ensemble (zookeeper.connect)"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        type=assignment,
        action="append",
        default=[],
        help="set any option by name; may be repeated",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Change the ACLs and report how many nodes have them."""
    from barnabas.config.broker import BrokerOptions
    from barnabas.config.properties import read_properties
    from barnabas.coordination.zookeeper.acl_migration import change_acls
    from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
    from barnabas.coordination.zookeeper.settings import settings_of

    values: dict[str, str] = {}
    if arguments.config is not None:
        try:
            text = Path(arguments.config).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as failure:
            raise ConfigError(f"--config {arguments.config}: cannot read: {failure}") from failure
        values.update(read_properties(text))
    if arguments.zookeeper is not None:
        values["zookeeper.connect"] = arguments.zookeeper
    values.update(arguments.settings)
    # In both directions ZooKeeper must know who asks.
    options = BrokerOptions.parse({**values, "zookeeper.set.acl": "true"})
    if options.zookeeper_connect is None:
        raise ConfigError("set --zookeeper, or zookeeper.connect in the file of --config")
    settings = settings_of(options)

    async def change() -> int:
        tree = ZooKeeperCoordination(replace(settings, set_acl=arguments.access == "secure"))
        await tree.start()
        try:
            return await change_acls(tree)
        finally:
            await tree.close()

    changed = on_loop(change())
    print(f"{arguments.access}: ACLs of {changed} nodes at {settings}")
