"""What a consumer is doing and why, in words and numbers for whoever wonders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.consumer.flow import Flow

if TYPE_CHECKING:
    from barnabas.consumer.core import ConsumerCore


def consumer_health(core: ConsumerCore, now_ms: float) -> dict[str, Any]:
    """Return the state of group, partitions and brokers; `status` is the short of it."""
    core.fetcher.plan.follow(core.subscription.assigned)
    partitions = {
        str(flow.partition): _partition(core, flow, now_ms)
        for flow in core.fetcher.plan.flows.values()
    }
    subscription = core.subscription
    return {
        "status": _status(partitions),
        "reads": subscription.mode.value,
        "topics": list(subscription.topics),
        "pattern": subscription.pattern.pattern if subscription.pattern is not None else None,
        "group": core.membership.health(),
        "partitions": partitions,
        "bytes_ahead": core.fetcher.ahead,
        "metadata_failure": _text(core.client.refresh_failure),
        "brokers": {
            node_id: {
                "fetch_waits_ms": [
                    round(now_ms - channel.busy_since_ms)
                    for channel in channels
                    if channel.busy_since_ms is not None
                ],
                "failure": _text(core.client.failure(node_id, channel=channels[0].name)),
            }
            for node_id, channels in core.fetcher.plan.channels.items()
        },
    }


def _partition(core: ConsumerCore, flow: Flow, now_ms: float) -> dict[str, Any]:
    state = flow.state
    obstacle = core.fetcher.plan.obstacle(flow, now_ms)
    doing = "fetching" if obstacle is None else obstacle.value
    if state.reset is not None:
        doing = f"resetting to {state.reset}"
    since_ms = flow.leaderless_since_ms
    return {
        "doing": doing,
        "position": state.position,
        "end": state.high_watermark,
        "lag": core.lag(flow.partition),
        "paused": state.paused,
        "bytes_ahead": flow.ahead,
        "leader": core.client.cluster.leader(flow.partition),
        "fetches_from": flow.preferred_id if flow.preferred_id >= 0 else "leader",
        "leaderless_ms": None if since_ms is None else round(now_ms - since_ms),
        "last_failure": _text(flow.failure),
    }


def _status(partitions: dict[str, dict[str, Any]]) -> str:
    if not partitions:
        return "nothing assigned"
    told = [f"{name} {part['doing']}" for name, part in partitions.items() if part["last_failure"]]
    if told:
        return f"troubled: {', '.join(told[:3])}"
    fetching = sum(part["doing"] == "fetching" for part in partitions.values())
    return f"fetching {fetching} of {len(partitions)} partitions"


def _text(failure: BaseException | None) -> str | None:
    return None if failure is None else f"{type(failure).__name__}: {failure}"
