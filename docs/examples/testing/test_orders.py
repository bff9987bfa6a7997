"""pytest: tests of a program that reads orders and writes invoices."""

import pytest

from barnabas import KafkaConsumer, KafkaProducer


def write_invoices(bootstrap, count):
    """The program under test: an invoice for each order."""
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
    with (
        KafkaConsumer("orders", group_id="invoices", **options) as orders,
        KafkaProducer(bootstrap_servers=bootstrap, acks="all") as invoices,
    ):
        for _ in range(count):
            order = next(orders)
            invoices.send("invoices", b"invoice of " + order.value, key=order.key).get(timeout=30)


def send_orders(bootstrap, count):
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0) as producer:
        for number in range(count):
            producer.send("orders", b"order %d" % number, key=b"customer").get(timeout=30)


def invoices_of(bootstrap, count):
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
    with KafkaConsumer("invoices", **options) as consumer:
        return [next(consumer).value for _ in range(count)]


def test_each_order_has_an_invoice(barnabas_own_cluster):
    send_orders(barnabas_own_cluster.bootstrap, 3)
    write_invoices(barnabas_own_cluster.bootstrap, 3)
    assert invoices_of(barnabas_own_cluster.bootstrap, 3) == [
        b"invoice of order 0",
        b"invoice of order 1",
        b"invoice of order 2",
    ]


@pytest.mark.barnabas(
    brokers=3, options={"default.replication.factor": 3, "min.insync.replicas": 2}
)
@pytest.mark.barnabas_kill(1, after_records=10)
def test_no_order_is_lost_with_a_broker(barnabas_own_cluster):
    send_orders(barnabas_own_cluster.bootstrap, 20)  # broker 1 dies under the tenth
    write_invoices(barnabas_own_cluster.bootstrap, 20)
    assert len(set(invoices_of(barnabas_own_cluster.bootstrap, 20))) == 20


@pytest.mark.barnabas_slow(20)
@pytest.mark.barnabas_isolate(0, after_records=5, for_s=0.5)
def test_a_bad_network_only_takes_longer(barnabas_own_cluster):
    send_orders(barnabas_own_cluster.bootstrap, 10)
    write_invoices(barnabas_own_cluster.bootstrap, 10)
    assert len(set(invoices_of(barnabas_own_cluster.bootstrap, 10))) == 10
