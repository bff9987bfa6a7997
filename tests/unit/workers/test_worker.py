"""When a worker says that it is in sync, and which tree it joins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.socket.session import SocketCoordination
from barnabas.metadata.cluster_view import ClusterView, PartitionView, TopicView
from barnabas.model.ids import ZERO_UUID
from barnabas.workers.channel import Orders
from barnabas.workers.worker import is_in_sync, tree_of


def test_all_its_replicas_must_be_in_sync() -> None:
    cluster = ClusterView()
    assert is_in_sync(cluster, 1)
    cluster.put_topic(
        TopicView(
            "t", ZERO_UUID, [PartitionView(2, 0, [2, 1], [1, 2]), PartitionView(2, 0, [2], [2])]
        )
    )
    assert is_in_sync(cluster, 1)
    cluster.put_topic(TopicView("u", ZERO_UUID, [PartitionView(2, 0, [2], [1, 2])]))
    assert not is_in_sync(cluster, 1)
    assert is_in_sync(cluster, 2)


def test_a_worker_joins_the_tree_of_its_supervisor() -> None:
    options = BrokerOptions.parse({"zookeeper.session.timeout.ms": "7000"})
    link: Any = SimpleNamespace(orders=Orders(1, {}, "/tree.sock"))
    tree = cast(SocketCoordination, tree_of(link, options))
    assert (tree._path, tree._timeout_ms) == ("/tree.sock", 7000)
    link.orders = Orders(1, {}, None)
    assert tree_of(link, options) is None
