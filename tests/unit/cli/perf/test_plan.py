"""What one client is to do, on its way to the client's process."""

from __future__ import annotations

from barnabas.cli.perf.plan import Plan


def test_a_plan_arrives_as_it_was_sent() -> None:
    plan = Plan(
        "consume",
        "orders",
        "aiokafka",
        {"client.id": "ä\n"},
        partitions=(0, 2),
        idle_s=float("inf"),
        payload_delimiter="\n",
    )
    text = plan.encoded()
    assert "\n" not in text, "it is a line"
    assert Plan.decoded(text) == plan
