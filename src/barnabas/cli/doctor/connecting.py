"""Checks of a client's way to a broker: name, TCP, TLS, versions, credentials, metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.cli.doctor.finding import Finding, amber, green, red
from barnabas.diary.wording import span

SLOW_MS = 1000.0
EXPIRES_SOON_DAYS = 30
SKEW_AMBER_MS, SKEW_RED_MS = 1000.0, 60_000.0
_LOOPBACK = ("127.", "::1", "localhost")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself, by its name or address alone."""
    return host.startswith(_LOOPBACK)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the name of a host resolves to."""

    host: str
    addresses: tuple[str, ...]
    elapsed_ms: float
    failure: str | None = None

    def judge(self) -> Finding:
        """Return whether the name has addresses."""
        if self.failure is not None or not self.addresses:
            return red(
                "resolve",
                self.host,
                self.failure or "it has no address",
                "check the name, /etc/hosts and the DNS server of this machine",
            )
        text = f"{', '.join(self.addresses)} ({self.elapsed_ms:.0f} ms)"
        if self.elapsed_ms > SLOW_MS:
            return amber(
                "resolve", self.host, text, "every new connection waits for this: mend DNS"
            )
        return green("resolve", self.host, text)


@dataclass(frozen=True, slots=True)
class Reach:
    """Which addresses of a host accept a connection: milliseconds, or the reason of a failure."""

    target: str
    outcomes: Mapping[str, float | str]

    @property
    def reached(self) -> bool:
        """Return whether any address accepts connections."""
        return any(isinstance(outcome, float) for outcome in self.outcomes.values())

    def judge(self) -> Finding:
        """Return whether a client gets through."""
        failed = {host: why for host, why in self.outcomes.items() if isinstance(why, str)}
        times = [ms for ms in self.outcomes.values() if isinstance(ms, float)]
        if not times:
            text = ", ".join(dict.fromkeys(failed.values())) or "no address to connect to"
            return red("connect", self.target, text, _connect_step(text))
        if failed:
            lost = ", ".join(f"{host} ({why})" for host, why in failed.items())
            return amber(
                "connect",
                self.target,
                f"not at {lost}",
                "clients that try this address first wait: remove it from DNS, or listen there",
            )
        text = f"{min(times):.1f} ms"
        if min(times) > SLOW_MS:
            return amber("connect", self.target, text, "look at the network between here and there")
        return green("connect", self.target, text)


def _connect_step(reason: str) -> str:
    if "refused" in reason:
        return "check host and port; is a broker running there? start one with: barnabas start"
    return "check host and port, the firewall and the routes to this host"


@dataclass(frozen=True, slots=True)
class Tls:
    """A handshake with the options of the client."""

    target: str
    version: str | None = None
    """None if the handshake failed."""
    expires_in_days: float | None = None
    """None if the certificate was not verified."""
    checks_name: bool = True
    failure: str | None = None
    step: str | None = None

    def judge(self) -> Finding:
        """Return whether the two trust each other, and for how long."""
        if self.version is None:
            step = self.step or "check security.protocol and ssl.truststore.location"
            return red("tls", self.target, self.failure or "no handshake", step)
        if self.expires_in_days is None:
            return amber(
                "tls",
                self.target,
                f"{self.version}, and any certificate is accepted",
                "set ssl.truststore.location to the CA that has issued the broker's certificate",
            )
        text = f"{self.version}, certificate valid for {self.expires_in_days:.0f} days"
        if self.expires_in_days < EXPIRES_SOON_DAYS:
            return amber("tls", self.target, text, "renew the certificate of the broker")
        if not self.checks_name:
            return amber(
                "tls",
                self.target,
                f"{text}; its name is not checked",
                "set ssl.endpoint.identification.algorithm=https",
            )
        return green("tls", self.target, text)


@dataclass(frozen=True, slots=True)
class Versions:
    """What a broker answers to ApiVersions."""

    target: str
    apis: int = 0
    lacking: tuple[str, ...] = ()
    """APIs that clients need, and that have no version in common with ours."""
    elapsed_ms: float = 0.0
    failure: str | None = None
    step: str | None = None

    def judge(self) -> Finding:
        """Return whether a broker is there, and one that we can talk to."""
        if self.failure is not None:
            step = self.step or "is it a Kafka broker that listens there?"
            return red("versions", self.target, self.failure, step)
        if self.lacking:
            return red(
                "versions",
                self.target,
                f"no common version of {', '.join(self.lacking)}",
                "update the broker, or this client",
            )
        return green("versions", self.target, f"{self.apis} APIs ({self.elapsed_ms:.1f} ms)")


@dataclass(frozen=True, slots=True)
class Login:
    """A login by SASL."""

    target: str
    mechanism: str
    failure: str | None = None
    step: str | None = None
    session_ms: float = 0.0

    def judge(self) -> Finding:
        """Return whether the broker accepts the credentials."""
        if self.failure is not None:
            step = self.step or "check the user and the password (sasl.jaas.config)"
            return red("sasl", self.target, self.failure, step)
        renewed = f", renewed within {span(self.session_ms)}" if self.session_ms else ""
        return green("sasl", self.target, f"{self.mechanism} accepted{renewed}")


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What Metadata says about the cluster."""

    target: str
    cluster_id: str | None = None
    brokers: int = 0
    controller_id: int | None = None
    failure: str | None = None
    step: str | None = None

    def judge(self) -> Finding:
        """Return whether there is a cluster with a controller."""
        if self.failure is not None:
            step = self.step or "look at the broker's log"
            return red("metadata", self.target, self.failure, step)
        if not self.brokers:
            return red(
                "metadata",
                self.target,
                "it names no broker",
                "it has lost its cluster: look at its log, and at its zookeeper.connect",
            )
        what = f"cluster {self.cluster_id} of {self.brokers} broker{'s' * (self.brokers != 1)}"
        if self.controller_id is None:
            return red(
                "metadata",
                self.target,
                f"{what} without a controller",
                "look at the logs of the brokers: one of them should win the election",
            )
        return green("metadata", self.target, f"{what}, controller {self.controller_id}")


@dataclass(frozen=True, slots=True)
class Advertised:
    """The address that the cluster sends clients to, for one broker."""

    broker: int
    address: str
    bootstrap_is_local: bool
    """Whether the cluster was reached at an address of this machine itself."""
    elapsed_ms: float | None = None
    failure: str | None = None
    cluster_id: str | None = None
    expected_cluster_id: str | None = None
    shared_with: tuple[int, ...] = ()
    """Other brokers that advertise the same address."""

    def judge(self) -> Finding:
        """Return whether a client that is sent there gets to this broker."""
        about = f"broker {self.broker}"
        there = f"clients are sent to {self.address}"
        local = is_loopback(self.address) and not self.bootstrap_is_local
        if self.failure is not None:
            return red(
                "advertised",
                about,
                f"{there}, and cannot reach it: {self.failure}",
                f"set advertised.listeners of broker {self.broker} to an address that clients "
                "reach, or open the way there",
            )
        if local or self.is_elsewhere:
            other = "their own machine" if local else f"another cluster ({self.cluster_id})"
            return red(
                "advertised",
                about,
                f"{there}, which is {other}",
                f"set advertised.listeners of broker {self.broker} to its own name",
            )
        if self.shared_with:
            others = ", ".join(map(str, self.shared_with))
            return red(
                "advertised",
                about,
                f"{there}, which is also the address of broker {others}",
                "give each broker an address of its own in advertised.listeners",
            )
        return green("advertised", about, f"{self.address} ({self.elapsed_ms or 0:.1f} ms)")

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the broker at this address belongs to another cluster."""
        return None not in (self.cluster_id, self.expected_cluster_id) and (
            self.cluster_id != self.expected_cluster_id
        )


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a broker's clock is ahead of ours, from the time that it stamped on a record."""

    broker: int
    ahead_ms: float
    uncertain_ms: float
    """Half of the time that the request took."""

    def judge(self) -> Finding:
        """Return whether the clocks agree, given what could be measured."""
        about = f"broker {self.broker}"
        off_ms = max(0.0, abs(self.ahead_ms) - self.uncertain_ms)
        side = "ahead of" if self.ahead_ms > 0 else "behind"
        text = f"its clock is {span(abs(self.ahead_ms))} {side} ours"
        step = "synchronize both clocks (NTP): retention, timestamps and tokens depend on them"
        if off_ms >= SKEW_RED_MS:
            return red("clock", about, text, step)
        if off_ms >= SKEW_AMBER_MS:
            return amber("clock", about, text, step)
        return green("clock", about, f"agrees with ours within {span(off_ms + self.uncertain_ms)}")


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A record that was sent to a partition, and read again."""

    broker: int
    partition: str
    sent_ms: float = 0.0
    read_ms: float = 0.0
    came_back: bool = False
    """Whether what was read is what was sent."""
    failure: str | None = None
    step: str | None = None

    def judge(self) -> Finding:
        """Return whether records get there and back."""
        about = f"broker {self.broker}" if self.broker >= 0 else self.partition
        if self.failure is not None:
            step = self.step or f"ask: barnabas why partition {self.partition}"
            return red("record", about, self.failure, step)
        if not self.came_back:
            return red(
                "record",
                about,
                f"what was read from {self.partition} is not what was sent",
                f"check the files on the broker: barnabas log verify (in {self.partition})",
            )
        text = f"sent in {span(self.sent_ms)}, read in {span(self.read_ms)}"
        if max(self.sent_ms, self.read_ms) > SLOW_MS:
            return amber("record", about, text, "look at the disk and the load of this broker")
        return green("record", about, text)
