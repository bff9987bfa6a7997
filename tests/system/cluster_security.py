"""Security of a cluster of processes: SASL_SSL everywhere, SCRAM between brokers too, and ACLs.

Each broker has a certificate of its own, which the others ask for. Sessions between brokers end
after some seconds, so that those that live on have logged in again, during every fault.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.certificates import Authority, Issued

from barnabas.config.jaas import quoted
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.initial_users import SUFFIX, InitialUser

ADMIN, BROKER, WORKER, STRANGER = "admin", "broker", "worker", "stranger"
"""Two super users, one who may do what the load does, and one who may do nothing."""
MECHANISM = "SCRAM-SHA-512"
SESSION_MS = 5000
AUTHORITIES = 4
"""How many authorities there are, one after the other."""
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_RIGHTS = {
    ResourceType.TOPIC: (Operation.READ, Operation.WRITE, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}


class ClusterKeys:
    """Users and certificates of one cluster, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authorities = [Authority(f"root {number}") for number in range(AUTHORITIES)]
        self._users = directory / "users"
        self._users.mkdir(0o700)
        self.trust_store = self._authorities[0].write(directory / "trusted.pem")
        self.cafile = directory / "ca.pem"  # clients know all that will ever issue
        self.cafile.write_text("".join(each.pem for each in self._authorities))
        for name in (ADMIN, BROKER, WORKER, STRANGER):
            acls = _acls() if name == WORKER else ()
            user = InitialUser.of_password(name, password_of(name), os.urandom, acls)
            file = self._users / f"{name}{SUFFIX}"
            file.touch(0o600)
            file.write_text(user.encode())

    def issue(self, number: int) -> Issued:
        """Write a new certificate of a broker over its old one."""
        issued = self._authorities[0].issue(f"broker-{number}")
        issued.write_pem(self._directory / f"broker-{number}.pem")
        return issued

    def replace_authority(self) -> None:
        """Let another authority issue from now on; the old one is trusted beside it."""
        old = self._authorities.pop(0)
        self.trust_store.write_text(old.pem + self._authorities[0].pem)

    def forget_old_authorities(self) -> None:
        """Let brokers trust those certificates alone that the present authority has issued."""
        self._authorities[0].write(self.trust_store)

    def broker_options(self, number: int) -> dict[str, str]:
        """Return the options of a broker, besides its listeners CLIENTS and PEERS."""
        self.issue(number)
        login = f"username={quoted(BROKER)} password={quoted(password_of(BROKER))}"
        scram = f"{MECHANISM.lower()}.sasl.jaas.config"
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._directory / f"broker-{number}.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust_store),
            "listener.name.peers.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.peers.{scram}": f"{_MODULE} {login};",
            f"listener.name.clients.{scram}": f"{_MODULE};",
            "listener.name.peers.connections.max.reauth.ms": str(SESSION_MS),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
            "barnabas.initial.users.dir": str(self._users),
        }

    def client_options(self, user: str = WORKER) -> dict[str, str]:
        """Return the options of a user, for librdkafka and for our clients, without an address."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password_of(user),
            "ssl.ca.location": str(self.cafile),
        }


def password_of(user: str) -> str:
    """Return a user's password."""
    return f"password-of-{user}"


def _acls() -> tuple[Binding, ...]:
    rights = [
        (Pattern(kind, "*", PatternType.LITERAL), operation)
        for kind, operations in _RIGHTS.items()
        for operation in operations
    ]
    cluster = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
    rights.append((cluster, Operation.IDEMPOTENT_WRITE))
    return tuple(
        Binding(pattern, Entry(f"User:{WORKER}", "*", operation, Permission.ALLOW))
        for pattern, operation in rights
    )
