"""The directory of a secured cluster: what is in it, and how it grows.

    ca.crt  ca.key              the authority that brokers and clients trust
    cluster.properties          options that all brokers share, with their secrets
    admin.properties            for commands of the administrator
    brokers/1/                  server.properties and broker.pem (key and certificate)
    users/admin.json            initial users, whom brokers add to the cluster
    clients/app/                password, certificate, options and programs of a client

Nothing is overwritten: what exists stays as it is, what is missing is added. Only `renew` replaces
files, those with certificates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from barnabas.config.properties import read_properties, write_properties
from barnabas.model.errors import ConfigError
from barnabas.security.acl.binding import Binding
from barnabas.security.initial_users import SUFFIX, InitialUser, own_names
from barnabas.security.setup import files
from barnabas.security.setup.broker_options import (
    ADMIN,
    BROKER,
    SASL_SSL,
    BrokerAddress,
    new_secret,
    own_options,
    protocol_of,
    shared_options,
)
from barnabas.security.setup.certificates import (
    Authority,
    certificate_in,
    check_library,
    new_key,
)
from barnabas.security.setup.client_files import (
    CA,
    KEYSTORE,
    PASSWORD,
    client_files,
    properties_file,
)
from barnabas.security.setup.client_options import ClientOptions

AUTHORITY_NAME = "Barnabas cluster CA"
DATA_DIR = "data"
CLIENT_AUTH_OPTION = "listener.name.sasl_ssl.ssl.client.auth"
BROKER_PEM, SERVER_PROPERTIES = "broker.pem", "server.properties"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Renewal:
    """A file with a certificate: when that expires, and whether it was renewed just now."""

    path: Path
    expires: datetime
    renewed: bool


def check_client_name(name: str) -> None:
    """Raise ConfigError unless a client may have this name, in a path and in a certificate."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"client {name!r}: must be 1 to 64 letters, digits, dots, underscores and hyphens, "
            "beginning with a letter or digit"
        )
    if name in (ADMIN, BROKER):
        raise ConfigError(f"client {name!r}: the name is that of a super user")


class SecurityDirectory:
    """Creates and extends the files of one cluster."""

    def __init__(
        self,
        path: Path,
        now: datetime,
        random_bytes: Callable[[int], bytes],
        report: Callable[[Path, bool], None] = lambda path, created: None,
    ) -> None:
        """`report` is called with each file, and whether it was created or exists already."""
        self.path = path
        self._root = path.resolve()  # options name files by absolute paths
        self._now = now
        self._random_bytes = random_bytes
        self._report = report
        self._loaded: Authority | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the directory has been created, with what all brokers share."""
        return (self._root / "cluster.properties").exists()

    def shared(self) -> dict[str, str]:
        """Return the options that all brokers share."""
        return self._properties("cluster.properties")

    def server_properties(self) -> dict[int, Path]:
        """Return the options file of each broker, by its id."""
        found = (self._root / "brokers").glob(f"*/{SERVER_PROPERTIES}")
        return dict(sorted((int(each.parent.name), each) for each in found))

    @property
    def bootstrap(self) -> str:
        """Return the advertised addresses of all brokers."""
        return ",".join(
            read_properties(path.read_text())["advertised.listeners"].partition("://")[2]
            for path in self.server_properties().values()
        )

    def create(
        self,
        brokers: list[BrokerAddress],
        *,
        zookeeper: str | None = None,
        client_auth: str | None = None,
    ) -> None:
        """Create what is missing for a cluster with these brokers and its administrator."""
        self._check_several(brokers, zookeeper)
        if self.is_complete:
            self._check_same("--zookeeper", "zookeeper.connect", zookeeper)
            self._check_same("--client-auth", CLIENT_AUTH_OPTION, client_auth, "none")
        check_library()
        files.make_private(self._root)
        for name in ("brokers", "clients", "users"):
            files.make_private(self._root / name)
        if not (self._root / "ca.crt").exists():
            self._create("ca.key", new_key())
            key = (self._root / "ca.key").read_bytes()
            self._create("ca.crt", Authority.certify(key, AUTHORITY_NAME, self._now))
        else:
            self._report(self.path / "ca.crt", False)
        options = shared_options(
            SASL_SSL,
            truststore=self._root / "ca.crt",
            users=self._root / "users",
            client_auth=client_auth or "none",
            zookeeper=zookeeper,
            random_bytes=self._random_bytes,
        )
        self._create("cluster.properties", write_properties(options, "All brokers").encode())
        for address in brokers:
            self._add_broker(address)
        self._add_admin()

    def add_broker(self, address: BrokerAddress) -> None:
        """Add a broker to a cluster on ZooKeeper."""
        self._check_complete()
        if address.broker_id in self.server_properties():
            raise ConfigError(f"broker {address.broker_id} exists already in {self.path}")
        if "zookeeper.connect" not in self.shared():
            raise ConfigError(
                f"{self.path / 'cluster.properties'}: has no zookeeper.connect, in which a second "
                "broker would find the first"
            )
        self._add_broker(address)

    def add_client(self, name: str, prefix: str | None) -> None:
        """Add a client who may use all names with a prefix, or nothing yet (None)."""
        check_client_name(name)
        self._check_complete()
        home = f"clients/{name}"
        files.make_private(self._root / home)
        acls = own_names(name, prefix) if prefix is not None else ()
        password = self._add_user(name, f"{home}/{PASSWORD}", acls)
        self._create(f"{home}/{CA}", (self._root / "ca.crt").read_bytes())
        self._issue(f"{home}/{KEYSTORE}", name, ())
        options = self._client_options(name, password, self._root / home)
        for file, content in client_files(options, prefix or f"{name}-").items():
            self._create(f"{home}/{file}", content.encode())

    def renew(self, within: timedelta | None) -> list[Renewal]:
        """Renew certificates that expire within a time, or all (None); return all of them."""
        self._check_complete()
        check_library()
        outcome = []
        for path in self._issued():
            pem = path.read_bytes()
            expires = certificate_in(pem).not_valid_after_utc
            renewed = within is None or expires - self._now <= within
            if renewed:
                fresh = self._authority().renew(pem, self._now)
                files.replace(path, fresh)
                expires = certificate_in(fresh).not_valid_after_utc
            outcome.append(Renewal(self._shown(path), expires, renewed))
        return outcome

    def authority_expires(self) -> datetime:
        """Return when the authority's certificate expires, and with it everything."""
        return certificate_in((self._root / "ca.crt").read_bytes()).not_valid_after_utc

    def _check_several(self, brokers: list[BrokerAddress], zookeeper: str | None) -> None:
        new = {each.broker_id for each in brokers} - self.server_properties().keys()
        if self.is_complete:
            alone = "zookeeper.connect" not in self.shared()
            if alone and len(new | self.server_properties().keys()) > 1:
                raise ConfigError(
                    f"{self.path / 'cluster.properties'}: has no zookeeper.connect; the cluster "
                    "was created for one broker alone"
                )
        elif len(new) > 1 and zookeeper is None:
            raise ConfigError("several brokers find each other in ZooKeeper: give --zookeeper")

    def _check_same(
        self, argument: str, option: str, value: str | None, default: str | None = None
    ) -> None:
        """Raise ConfigError if another value is asked for than the cluster has."""
        known = self.shared().get(option, default)
        if value is not None and value != known:
            raise ConfigError(
                f"{argument} {value}: {self.path / 'cluster.properties'} exists, with "
                f"{option}={known or ''}, and is not overwritten"
            )

    def _add_broker(self, address: BrokerAddress) -> None:
        home = f"brokers/{address.broker_id}"
        files.make_private(self._root / home)
        self._issue(
            f"{home}/{BROKER_PEM}", BROKER, address.certified, f"broker {address.broker_id}"
        )
        shared = self.shared()
        alone = "zookeeper.connect" not in shared
        options = own_options(
            address,
            protocol_of(shared),
            self._root / home / BROKER_PEM,
            DATA_DIR if alone else f"{DATA_DIR}-{address.broker_id}",
        )
        self._create(
            f"{home}/{SERVER_PROPERTIES}",
            write_properties({**options, **shared}, f"Broker {address.broker_id}").encode(),
        )

    def _add_admin(self) -> None:
        home = f"clients/{ADMIN}"
        files.make_private(self._root / home)
        password = self._add_user(ADMIN, f"{home}/{PASSWORD}", ())
        self._issue(f"{home}/{KEYSTORE}", ADMIN, ())
        options = self._client_options(ADMIN, password, self._root / home)
        self._create("admin.properties", properties_file(options).encode())

    def _add_user(self, name: str, path: str, acls: tuple[Binding, ...]) -> str:
        """Write a password and what the brokers store of it, unless they exist."""
        self._create(path, f"{new_secret(self._random_bytes)}\n".encode())
        password = (self._root / path).read_text().strip()
        user = f"users/{name}{SUFFIX}"
        if (self._root / user).exists():  # deriving keys takes milliseconds
            self._report(self.path / user, False)
        else:
            derived = InitialUser.of_password(name, password, self._random_bytes, acls)
            self._create(user, derived.encode().encode())
        return password

    def _client_options(self, name: str, password: str, home: Path) -> ClientOptions:
        shared = self.shared()
        protocol = protocol_of(shared)
        asked = shared.get(CLIENT_AUTH_OPTION, "none")
        cafile = home / CA if name != ADMIN else self._root / "ca.crt"
        return ClientOptions(
            self.bootstrap,
            protocol,
            cafile,
            name,
            password,
            home / KEYSTORE if asked != "none" else None,
        )

    def _issue(self, path: str, name: str, hosts: tuple[str, ...], unit: str = "") -> None:
        if (self._root / path).exists():
            self._report(self.path / path, False)
        else:
            self._create(path, self._authority().issue(name, hosts, self._now, unit))

    def _authority(self) -> Authority:
        if self._loaded is None:
            key = self._root / "ca.key"
            if not key.exists():
                raise ConfigError(
                    f"{self._shown(key)}: is missing; certificates are issued where it is"
                )
            try:
                self._loaded = Authority(key.read_bytes(), (self._root / "ca.crt").read_bytes())
            except ConfigError as failure:
                raise ConfigError(f"{self._shown(key)}: {failure}") from failure
        return self._loaded

    def _issued(self) -> Iterator[Path]:
        yield from sorted((self._root / "brokers").glob(f"*/{BROKER_PEM}"))
        yield from sorted((self._root / "clients").glob(f"*/{KEYSTORE}"))

    def _create(self, path: str, content: bytes) -> None:
        self._report(self.path / path, files.create(self._root / path, content))

    def _properties(self, name: str) -> dict[str, str]:
        return read_properties((self._root / name).read_text("utf-8"))

    def _shown(self, path: Path) -> Path:
        return self.path / path.relative_to(self._root)

    def _check_complete(self) -> None:
        if not self.is_complete:
            raise ConfigError(
                f"{self.path}: has no cluster.properties; first: barnabas security init {self.path}"
            )
