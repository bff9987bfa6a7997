"""Checks of a broker's options: those that contradict each other, are risky, or do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from barnabas.cli.doctor.connecting import is_loopback
from barnabas.cli.doctor.finding import Check, Finding, amber, green, red
from barnabas.cli.output import counted
from barnabas.config.aliases import ALIASES
from barnabas.config.broker import BrokerOptions
from barnabas.model.errors import ConfigError

NAME = "options"
EQUAL = (
    "auto.create.topics.enable",
    "default.replication.factor",
    "log.message.timestamp.type",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "offsets.topic.num.partitions",
    "transaction.state.log.num.partitions",
    "unclean.leader.election.enable",
)
"""Options that should have the same value on every broker: any of them may be the controller."""


@dataclass(frozen=True, slots=True)
class BrokerOptionsView:
    """The options of a broker as text, secrets left out, and the names of those that were set."""

    about: str
    values: Mapping[str, str]
    given: Set[str]
    is_barnabas: bool

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if the broker does not know the option."""
        text = self.values.get(name)
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None

    def is_true(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.values.get(name) == "true"


@dataclass(frozen=True, slots=True)
class Wrong:
    """Options that cannot both be meant."""

    about: str
    text: str
    step: str

    def judge(self) -> Finding:
        """Return that something fails because of them."""
        return red(NAME, self.about, self.text, self.step)


@dataclass(frozen=True, slots=True)
class Risky:
    """An option that works, and may not do what was meant."""

    about: str
    text: str
    step: str

    def judge(self) -> Finding:
        """Return that it should be looked at."""
        return amber(NAME, self.about, self.text, self.step)


@dataclass(frozen=True, slots=True)
class Consistent:
    """Options among which nothing was found."""

    about: str
    count: int

    def judge(self) -> Finding:
        """Return how many were set."""
        return green(NAME, self.about, f"{counted(self.count, 'option')} set, no contradiction")


def option_checks(view: BrokerOptionsView, *, brokers: int | None) -> list[Check]:
    """Return what is wrong with the options of one broker, or that nothing is.

    `brokers` is how many there are, if that is known.
    """
    found: list[Check] = [
        *_wrong(view, brokers),
        *_risky(view),
        *_inert(view),
    ]
    return found or [Consistent(view.about, len(view.given))]


def _wrong(view: BrokerOptionsView, brokers: int | None) -> Iterator[Check]:
    for less, more, consequence in (
        (
            "min.insync.replicas",
            "default.replication.factor",
            "new topics reject acks=all",
        ),
        (
            "transaction.state.log.min.isr",
            "transaction.state.log.replication.factor",
            "transactions cannot begin",
        ),
        (
            "message.max.bytes",
            "socket.request.max.bytes",
            "records of the allowed size cannot be sent",
        ),
        (
            "transaction.max.timeout.ms",
            "transactional.id.expiration.ms",
            "a producer may expire within its transaction",
        ),
        (
            "replica.fetch.wait.max.ms",
            "replica.lag.time.max.ms",
            "followers that wait for records leave the ISR",
        ),
    ):
        low, high = view.whole(less), view.whole(more)
        if low is not None and high is not None and low > high:
            yield Wrong(
                view.about,
                f"{less}={low} is more than {more}={high}: {consequence}",
                f"set {less} to at most {more}",
            )
    if brokers is None:
        return
    factor = view.whole("default.replication.factor")
    if factor is not None and factor > brokers:
        yield Wrong(
            view.about,
            f"default.replication.factor={factor}, and there are {counted(brokers, 'broker')}: "
            "topics without a factor of their own cannot be created as meant",
            "start more brokers, or set default.replication.factor lower",
        )


def _risky(view: BrokerOptionsView) -> Iterator[Check]:
    factor, min_isr = view.whole("default.replication.factor"), view.whole("min.insync.replicas")
    if factor is not None and factor > 1 and factor == min_isr:
        yield Risky(
            view.about,
            f"min.insync.replicas={min_isr} is the whole default.replication.factor: "
            "no broker can restart without rejected writes",
            "set min.insync.replicas lower",
        )
    if view.is_true("unclean.leader.election.enable"):
        yield Risky(
            view.about,
            "unclean.leader.election.enable=true: acknowledged records may be lost",
            "set it to false, and to true for single topics that may lose records",
        )
    retention, segment = view.whole("log.retention.bytes"), view.whole("log.segment.bytes")
    if retention is not None and segment is not None and 0 <= retention < segment:
        yield Risky(
            view.about,
            f"log.retention.bytes={retention} is less than log.segment.bytes={segment}: "
            "a partition keeps its newest segment, so it grows beyond its limit",
            "set log.segment.bytes lower",
        )
    if view.values.get("controlled.shutdown.enable") == "false":
        yield Risky(
            view.about,
            "controlled.shutdown.enable=false: every stop leaves partitions without a leader",
            "set it to true",
        )
    directories = view.values.get("log.dirs") or view.values.get("log.dir") or ""
    for path in directories.split(","):
        if f"{path.strip()}/".startswith("/tmp/"):
            yield Risky(
                view.about,
                f"log.dirs={path.strip()}: the system empties /tmp",
                "move the data to a directory that stays",
            )
    yield from _risky_security(view)


def _risky_security(view: BrokerOptionsView) -> Iterator[Check]:
    authorizer = view.values.get("authorizer.class.name")
    if view.values.get("super.users") and not authorizer:
        yield Risky(
            view.about,
            "super.users does nothing: there is no authorizer",
            "set authorizer.class.name, or remove super.users",
        )
    if authorizer and view.is_true("allow.everyone.if.no.acl.found"):
        yield Risky(
            view.about,
            "allow.everyone.if.no.acl.found=true: what has no ACL is open to everyone",
            "set it to false once the ACLs are there",
        )
    listeners = view.values.get("listeners", "")
    advertised = view.values.get("advertised.listeners") or ""
    for entry in advertised.split(","):
        host = entry.strip().partition("://")[2]
        if host and is_loopback(host) and not _listens_on_loopback(listeners, entry):
            yield Risky(
                view.about,
                f"advertised.listeners={entry.strip()}: clients elsewhere are sent to themselves",
                "advertise a name that other machines resolve to this one",
            )


def _listens_on_loopback(listeners: str, advertised: str) -> bool:
    name = advertised.strip().partition("://")[0].upper()
    for entry in listeners.split(","):
        listener, _, host = entry.strip().partition("://")
        if listener.upper() == name:
            return is_loopback(host)
    return False


def _inert(view: BrokerOptionsView) -> Iterator[Check]:
    for names in ALIASES.values():
        first = next((name for name in names if name in view.given), None)
        for name in names:
            if name in view.given and name != first:
                yield Risky(
                    view.about,
                    f"{name} does nothing: {first} is set, too",
                    f"remove one of them; {first} decides",
                )
    if not view.is_barnabas:
        return
    for name in sorted(view.given):
        declared = BrokerOptions.find(name)
        text = view.values.get(name)
        if declared is None or not declared.reserved or text is None:
            continue
        try:
            is_default = declared.parse(text) == declared.default
        except ConfigError:
            is_default = False
        if not is_default:
            yield Risky(
                view.about, f"{name}={text} does nothing: {declared.reserved}", f"remove {name}"
            )


def unequal(views: Iterable[BrokerOptionsView]) -> Iterator[Check]:
    """Yield the options in which brokers differ that should not."""
    listed = list(views)
    for name in EQUAL:
        values: dict[str, list[str]] = {}
        for view in listed:
            if name in view.values:
                values.setdefault(view.values[name], []).append(view.about)
        if len(values) > 1:
            shown = ", ".join(f"{value} ({', '.join(who)})" for value, who in values.items())
            yield Risky(
                "all brokers",
                f"{name} differs: {shown}",
                "give it one value: barnabas configs alter --brokers",
            )
