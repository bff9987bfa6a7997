"""Security of a simulated cluster: SCRAM between brokers, and ACLs.

Clients have a listener without security, as the user ANONYMOUS, who may do all that no ACL speaks
of; those of the cluster leave ClusterAction to brokers. Sessions between them end within seconds.
"""

from __future__ import annotations

import json

from barnabas.coordination.contract import Create
from barnabas.metadata import acl_nodes
from barnabas.security.acl.binding import Entry, Pattern, Permission
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.sasl.scram_credentials import SHA_256, ScramCredential
from barnabas.simulation.world import World

PEERS_PORT = 9093
BROKER, PASSWORD = "broker", "of-brokers"
ANYONE = (Operation.DESCRIBE, Operation.CREATE, Operation.ALTER, Operation.IDEMPOTENT_WRITE)
LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="{BROKER}" password="{PASSWORD}";'
)


def broker_options(host: str, port: int) -> dict[str, str]:
    """Return the options of a broker on a host, with a listener for clients on a port."""
    return {
        "listeners": f"CLIENTS://{host}:{port},PEERS://{host}:{PEERS_PORT}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PEERS",
        "sasl.enabled.mechanisms": SHA_256.name,
        "sasl.mechanism.inter.broker.protocol": SHA_256.name,
        "listener.name.peers.scram-sha-256.sasl.jaas.config": LOGIN,
        "listener.name.peers.connections.max.reauth.ms": "10000",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{BROKER}",
        "allow.everyone.if.no.acl.found": "true",
    }


def add_users(world: World) -> None:
    """Add the brokers' user, and the ACLs, as an administrator does before the first start."""
    credential = ScramCredential.of_password(SHA_256, PASSWORD, b"salt of a test").encode()
    user = json.dumps({"version": 1, "config": {SHA_256.name: credential}})
    pattern = Pattern(ResourceType.CLUSTER, CLUSTER_NAME)
    entries = [Entry("User:ANONYMOUS", "*", each, Permission.ALLOW) for each in ANYONE]
    tree = world.coordination_store.tree
    session = tree.open_session(0)
    for path, data in (
        (f"/config/users/{BROKER}", user.encode()),
        (acl_nodes.acl_path(pattern), acl_nodes.encode_entries(entries)),
    ):
        tree.create(Create(path, data), session, make_parents=True)
