"""librdkafka's properties: which are ours, which have no effect, which are rejected, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OURS: Mapping[str, str] = MappingProxyType(
    {
        "message.timeout.ms": "delivery.timeout.ms",
        "message.max.bytes": "max.request.size",
        "socket.timeout.ms": "request.timeout.ms",
        "auto.commit.enable": "enable.auto.commit",
    }
)
"""Properties that are options of ours under names that our own clients do not take."""

_TUNING = "the network's side of the client is ours, and tunes itself"
_QUEUES = "fetched records are bounded by fetch.max.bytes and max.partition.fetch.bytes"
_VERSIONS = "versions are negotiated with every broker"
_LOGS = "log lines go to Python's logging, where their level is set"
_LEGACY = "only the legacy consumer of librdkafka had it"

NO_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        "builtin.features": "there are no optional features",
        "client.software.name": "brokers see barnabas",
        "client.software.version": "brokers see our version",
        "message.copy.max.bytes": "messages are always copied into a batch",
        "topic.metadata.refresh.fast.interval.ms": _TUNING,
        "topic.metadata.refresh.fast.cnt": _TUNING,
        "topic.metadata.refresh.sparse": "only topics in use are asked for",
        "metadata.request.timeout.ms": "socket.timeout.ms is for all requests",
        "debug": _LOGS,
        "log_level": _LOGS,
        "log.queue": _LOGS,
        "log.thread.name": _LOGS,
        "log.connection.close": _LOGS,
        "socket.blocking.max.ms": _TUNING,
        "socket.keepalive.enable": "the operating system's default holds; see socket.options",
        "broker.address.ttl": "a name is resolved for every connection",
        "broker.address.family": "all addresses of a host name are tried in turn",
        "enable.gapless.guarantee": "an idempotent producer fails a batch, and never skips it",
        "sasl.kerberos.kinit.cmd": "tickets come from the cache, or from sasl.kerberos.keytab",
        "sasl.kerberos.min.time.before.relogin": "GSSAPI renews tickets",
        "ssl.ca.certificate.stores": "only Windows has them",
        "socket.nagle.disable": "TCP_NODELAY is always set",
        "socket.max.fails": _TUNING,
        "broker.version.fallback": _VERSIONS,
        "api.version.request": _VERSIONS,
        "api.version.request.timeout.ms": _VERSIONS,
        "api.version.fallback.ms": _VERSIONS,
        "reconnect.backoff.jitter.ms": "pauses always have jitter",
        "enable.sparse.connections": "connections are opened when they are needed",
        "enable.random.seed": "Python seeds its own generator",
        "enable.metrics.push": "metrics are not pushed by the client",
        "max.poll.records": "poll returns one message, and consume takes the number",
        "queue.buffering.backpressure.threshold": _TUNING,
        "batch.num.messages": "batches are bounded by their size, see batch.size",
        "queuing.strategy": "each partition has a queue, first in, first out",
        "produce.offset.report": "offsets are always reported",
        "queued.min.messages": _QUEUES,
        "queued.max.messages.kbytes": _QUEUES,
        "fetch.queue.backoff.ms": _QUEUES,
        "fetch.error.backoff.ms": "retry.backoff.ms is for all requests",
        "coordinator.query.interval.ms": "a coordinator is looked up when it is needed",
        "consume.callback.max.messages": _LEGACY,
        "offset.store.method": _LEGACY,
        "offset.store.path": _LEGACY,
        "offset.store.sync.interval.ms": _LEGACY,
        "group.protocol.type": "groups of consumers have one type",
        "sticky.partitioning.linger.ms": "without a key, one partition gets a whole batch",
        "internal.termination.signal": "no signal ends our threads",
        "sasl.oauthbearer.method": "an oauth_cb, or the endpoint's URL, decides",
    }
)
"""Properties that are accepted to no effect, and why."""

_TLS = "Python's ssl module has no such setting"
_PLUGINS = "it is code for librdkafka"
_CLUSTER = "barnabas.testing.Cluster starts brokers for tests"

REJECTED: Mapping[str, str] = MappingProxyType(
    {
        "ssl.curves.list": _TLS,
        "ssl.sigalgs.list": _TLS,
        "ssl.providers": _TLS,
        "ssl.engine.location": _TLS,
        "ssl.engine.id": _TLS,
        "plugin.library.paths": _PLUGINS,
        "test.mock.num.brokers": _CLUSTER,
        "test.mock.broker.rtt": _CLUSTER,
        "enable.sasl.oauthbearer.unsecure.jwt": "give an oauth_cb, which returns such tokens",
        "sasl.oauthbearer.grant.type": "a token endpoint is asked with client_credentials",
        "sasl.oauthbearer.metadata.authentication.type": "give an oauth_cb",
        **{
            f"sasl.oauthbearer.assertion.{each}": "give an oauth_cb"
            for each in (
                "algorithm",
                "private.key.file",
                "private.key.passphrase",
                "private.key.pem",
                "file",
                "claim.aud",
                "claim.exp.seconds",
                "claim.iss",
                "claim.jti.include",
                "claim.nbf.seconds",
                "claim.sub",
                "jwt.template.file",
            )
        },
    }
)
"""Properties that a program may rely on and that are not available, and why."""

CALLBACKS = (
    "error_cb",
    "stats_cb",
    "throttle_cb",
    "logger",
    "on_delivery",
    "on_commit",
    "oauth_cb",
)
"""Properties whose values are functions or objects of the program."""

OWN = (
    "statistics.interval.ms",
    "queue.buffering.max.messages",
    "queue.buffering.max.kbytes",
    "delivery.report.only.error",
    "topic.metadata.propagation.max.ms",
    "partitioner",
    "enable.partition.eof",
    "enable.auto.offset.store",
    "compression.level",
    "topic.blacklist",
    "default.topic.config",
    "enable.ssl.certificate.verification",
)
"""Properties that the classes of this package handle themselves."""

PARTITIONERS = (
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
)
