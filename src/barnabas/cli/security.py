"""`barnabas security`: certificates, users and options of a secured cluster, in one directory."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from barnabas.cli.arguments import add_word, count
from barnabas.config.properties import read_properties
from barnabas.model.errors import ConfigError
from barnabas.security.setup.broker_options import ADMIN, CLIENT_AUTH, addresses
from barnabas.security.setup.directory import SecurityDirectory, check_client_name

DIRECTORY = "security"
HOST, PORT = "127.0.0.1", 9092
USER = "app"
RENEWAL_DAYS = 30
AUTHORITY_WARNING = timedelta(days=365)

INIT = """\
  barnabas security init
  barnabas security init --host kafka1.example.com,10.0.0.1 --port 9093
  barnabas security init --brokers 3 --host k1 --host k2 --host k3 --zookeeper zk1:2181/kafka
"""
ADD_BROKER = """\
  barnabas security add-broker --host k4.example.com
"""
ADD_CLIENT = """\
  barnabas security add-client billing
  barnabas security add-client billing --prefix invoices-
  barnabas security add-client reports --no-acls
"""
RENEW = """\
  barnabas security renew
  barnabas security renew --within 90
  barnabas security renew --all
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    init = add_word(
        actions, "init", "create what a secured cluster needs, or what is missing", _init, INIT
    )
    init.add_argument(
        "directory", metavar="DIR", nargs="?", default=DIRECTORY, help="default: security"
    )
    init.add_argument(
        "--brokers", metavar="N", type=count, help="number of brokers (default: those of --host)"
    )
    _add_host(init, "append", "once for all brokers, or once for each")
    init.add_argument(
        "--port",
        metavar="PORT",
        type=int,
        default=PORT,
        help="port of the listener; brokers on one host have successive ones (default: 9092)",
    )
    init.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/CHROOT]",
        help="ensemble in which several brokers find each other (zookeeper.connect)",
    )
    init.add_argument(
        "--client-auth",
        choices=CLIENT_AUTH,
        help="whether clients also present a certificate (ssl.client.auth; default: none)",
    )
    init.add_argument(
        "--client", metavar="NAME", default=USER, help="name of a first client (default: app)"
    )

    broker = add_word(
        actions, "add-broker", "add one more broker to a cluster", _add_broker, ADD_BROKER
    )
    _add_directory(broker)
    broker.add_argument("--id", metavar="N", type=count, help="its id (default: the next)")
    _add_host(broker, "store", "the first one is advertised")
    broker.add_argument(
        "--port", metavar="PORT", type=int, default=PORT, help="its port (default: 9092)"
    )

    client = add_word(
        actions,
        "add-client",
        "add a user with a password, a certificate and files for each library",
        _add_client,
        ADD_CLIENT,
    )
    client.add_argument("name", metavar="NAME", help="name of the user")
    _add_directory(client)
    names = client.add_mutually_exclusive_group()
    names.add_argument(
        "--prefix",
        metavar="PREFIX",
        help="topics, groups and transactional ids that the user may use (default: NAME-)",
    )
    names.add_argument(
        "--no-acls", action="store_true", help="allow nothing yet; see barnabas acls"
    )

    renew = add_word(actions, "renew", "renew certificates that expire soon", _renew, RENEW)
    _add_directory(renew)
    which = renew.add_mutually_exclusive_group()
    which.add_argument(
        "--within",
        metavar="DAYS",
        type=count,
        default=RENEWAL_DAYS,
        help="renew those that expire in so many days (default: 30)",
    )
    which.add_argument("--all", action="store_true", help="renew all")


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir",
        dest="directory",
        metavar="DIR",
        default=DIRECTORY,
        help="directory of the cluster (default: security)",
    )


def _add_host(parser: argparse.ArgumentParser, action: str, how: str) -> None:
    parser.add_argument(
        "--host",
        metavar="NAME[,NAME...]",
        action=action,
        type=hosts,
        help=f"names and addresses of a broker, {how} (default: {HOST})",
    )


def hosts(text: str) -> tuple[str, ...]:
    """Parse the names of one broker."""
    names = tuple(name.strip().removeprefix("[").removesuffix("]") for name in text.split(","))
    for name in names:
        if not name or any(character.isspace() or character in "/@" for character in name):
            raise argparse.ArgumentTypeError(f"{text!r}: {name!r} is not a host name or address")
    return names


def options_to_start(path: Path, listen: str | None, broker_id: int | None) -> dict[str, str]:
    """Return the options of a broker for `barnabas start --secure`.

    The directory is created for this one broker if it does not exist.
    """
    directory = _directory(path, quiet=True)
    if not path.exists():
        _create_for_one(directory, listen or f"{HOST}:{PORT}", broker_id or 1)
    files = directory.server_properties()
    if not files:
        raise ConfigError(f"{path}: has no brokers; first: barnabas security init {path}")
    if (broker_id is None and len(files) != 1) or (
        broker_id is not None and broker_id not in files
    ):
        ids = ", ".join(map(str, files))
        raise ConfigError(f"--id {broker_id}: must be a broker of {path}, which has: {ids}")
    chosen = next(iter(files)) if broker_id is None else broker_id
    values = read_properties(files[chosen].read_text("utf-8"))
    if listen is not None:  # the address that is listened on is the one to advertise, too
        del values["advertised.listeners"]
    return values


def how_to_connect(path: Path) -> list[str]:
    """Return where the options of clients are, if they are on this machine."""
    admin = path / "admin.properties"
    clients = [each for each in sorted(path.glob("clients/*")) if each.name != ADMIN]
    return [
        *([f"administer:         --command-config {admin}"] if admin.exists() else []),
        *(f"options, programs:  {each}" for each in clients),
    ]


def _create_for_one(directory: SecurityDirectory, listen: str, broker_id: int) -> None:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or port == "0":
        raise ConfigError(
            f"--listen {listen}: must be HOST:PORT with a port from 1, which will be in the "
            f"options of clients, because {directory.path} does not exist yet"
        )
    [address] = addresses(1, [(host.removeprefix("[").removesuffix("]"),)], int(port), broker_id)
    directory.create([address])
    directory.add_client(USER, f"{USER}-")


def _init(arguments: argparse.Namespace) -> None:
    check_client_name(arguments.client)
    directory = _directory(Path(arguments.directory))
    given = arguments.host or [(HOST,)]
    number = arguments.brokers or max(len(given), len(directory.server_properties()))
    directory.create(
        addresses(number, given, arguments.port),
        zookeeper=arguments.zookeeper,
        client_auth=arguments.client_auth,
    )
    directory.add_client(arguments.client, f"{arguments.client}-")
    which = "" if number == 1 else " --id 1"
    print(f"start a broker:     barnabas start --secure{_unless_default(directory.path)}{which}")
    print(*how_to_connect(directory.path), sep="\n")


def _unless_default(path: Path) -> str:
    return "" if str(path) == DIRECTORY else f" {path}"


def _add_broker(arguments: argparse.Namespace) -> None:
    directory = _directory(Path(arguments.directory))
    number = arguments.id or max(directory.server_properties(), default=0) + 1
    [address] = addresses(1, [arguments.host or (HOST,)], arguments.port, number)
    directory.add_broker(address)


def _add_client(arguments: argparse.Namespace) -> None:
    directory = _directory(Path(arguments.directory))
    prefix = None if arguments.no_acls else arguments.prefix or f"{arguments.name}-"
    directory.add_client(arguments.name, prefix)
    print(f"brokers add the user {arguments.name} when they start, or within seconds")


def _renew(arguments: argparse.Namespace) -> None:
    directory = _directory(Path(arguments.directory))
    within = None if arguments.all else timedelta(days=arguments.within)
    for each in directory.renew(within):
        word = "renewed" if each.renewed else "valid"
        print(f"{word:8}{each.path}: expires on {each.expires:%Y-%m-%d}")
    expires = directory.authority_expires()
    if expires - _now() < AUTHORITY_WARNING:
        raise ConfigError(
            f"{directory.path / 'ca.crt'}: expires on {expires:%Y-%m-%d}, and with it all "
            "certificates: initialise another directory, and let brokers and clients trust both"
        )


def _directory(path: Path, *, quiet: bool = False) -> SecurityDirectory:
    def report(file: Path, created: bool) -> None:
        if not quiet:
            print(f"{'created' if created else 'exists':8}{file}")

    return SecurityDirectory(path, _now(), os.urandom, report)


def _now() -> datetime:
    return datetime.now(UTC)
