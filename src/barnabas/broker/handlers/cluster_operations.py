"""What a client may do to the cluster, as Metadata and DescribeCluster say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session


def cluster_operations(broker: Broker, session: Session) -> int:
    """Return the bits of the allowed operations; 0 unless the client may describe the cluster."""
    if not broker.sees(session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return broker.authorized_operations(session, ResourceType.CLUSTER, CLUSTER_NAME)
