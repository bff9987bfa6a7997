"""What a consumer is doing and why, in words and numbers, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.client.connection_stats import with_count
from barnabas.consumer.partition_fetch_state import PartitionFetch

if TYPE_CHECKING:
    from barnabas.consumer.core import ConsumerCore


def consumer_health(core: ConsumerCore, now_ms: float) -> dict[str, Any]:
    """Return the state of group, partitions and brokers; `status` is its summary."""
    core.fetcher.plan.follow(core.subscription.assigned)
    partitions = {
        str(fetch.partition): _partition(core, fetch, now_ms)
        for fetch in core.fetcher.plan.fetches.values()
    }
    subscription = core.subscription
    return {
        "status": _status(partitions),
        "reads": subscription.mode.value,
        "topics": list(subscription.topics),
        "pattern": subscription.pattern.pattern if subscription.pattern is not None else None,
        "group": core.member.health(),
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


def consumer_metrics(core: ConsumerCore, elapsed_s: float) -> dict[str, dict[str, float]]:
    """Return groups of metrics under the names that Kafka's consumers use."""
    prefix = core.options.metric_group_prefix
    fetching = core.fetcher.counts.metrics(core.buffer.records, elapsed_s)
    assigned = core.subscription.assigned
    manager = f"{prefix}-fetch-manager-metrics"
    lags = {each: lag for each in sorted(assigned) if (lag := core.lag(each)) is not None}
    states = {each: core.subscription.state(each) for each in sorted(assigned)}
    leads = {each: lead for each, state in states.items() if (lead := state.lead()) is not None}
    fetching["records-lead-min"] = min(leads.values(), default=0)
    fetching["records-lag-max"] = max(lags.values(), default=0)
    seconds = max(elapsed_s, 1e-9)
    groups = {
        **core.client.metrics(prefix),
        manager: fetching,
        f"{prefix}-coordinator-metrics": core.member.counts.metrics(
            len(assigned), elapsed_s, core.now_ms()
        ),
    }
    for topic, size in core.fetcher.counts.topics.items():
        groups[f"{manager}.{topic}"] = {
            "bytes-consumed-total": size,
            "bytes-consumed-rate": size / seconds,
        }
    for partition, lag in lags.items():
        # A topic may have the name of another one's partition.
        groups.setdefault(f"{manager}.{partition}", {})["records-lag"] = lag
    for partition, lead in leads.items():
        groups.setdefault(f"{manager}.{partition}", {})["records-lead"] = lead
    return with_count(groups)


def _partition(core: ConsumerCore, fetch: PartitionFetch, now_ms: float) -> dict[str, Any]:
    state = fetch.state
    blocked_by = core.fetcher.plan.blocked_by(fetch, now_ms)
    doing = "fetching" if blocked_by is None else blocked_by.value
    if state.reset is not None:
        doing = f"resetting to {state.reset}"
    since_ms = fetch.leaderless_since_ms
    return {
        "doing": doing,
        "position": state.position,
        "end": state.high_watermark,
        "lag": core.lag(fetch.partition),
        "paused": state.paused,
        "bytes_ahead": fetch.ahead,
        "leader": core.client.cluster.leader(fetch.partition),
        "fetches_from": fetch.preferred_id if fetch.preferred_id >= 0 else "leader",
        "leaderless_ms": None if since_ms is None else round(now_ms - since_ms),
        "last_failure": _text(fetch.failure),
    }


def _status(partitions: dict[str, dict[str, Any]]) -> str:
    if not partitions:
        return "nothing assigned"
    failing = [
        f"{name} {part['doing']}" for name, part in partitions.items() if part["last_failure"]
    ]
    if failing:
        return f"failing: {', '.join(failing[:3])}"
    fetching = sum(part["doing"] == "fetching" for part in partitions.values())
    return f"fetching {fetching} of {len(partitions)} partitions"


def _text(failure: BaseException | None) -> str | None:
    return None if failure is None else f"{type(failure).__name__}: {failure}"
