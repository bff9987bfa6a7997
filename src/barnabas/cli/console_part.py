"""The console of `barnabas start`: wired to the broker through its door and its window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.diary.cluster_diary import ClusterDiary
from barnabas.broker.door.diary_topic import DiaryTopic
from barnabas.broker.door.door import BrokerDoor
from barnabas.broker.monitoring.console_window import ConsoleWindow
from barnabas.broker.monitoring.request_view import RequestView
from barnabas.cli.console_tls import ConsoleTls
from barnabas.console.address import ConsoleAddress, check_exposure, parse_address
from barnabas.console.server import ConsoleServer, Hosting
from barnabas.diary.concerns import Concerns
from barnabas.diary.sentences import sentence
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.model.observations import Diary, DiaryEntry
from barnabas.model.visitor import Mode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.broker import BrokerOptions


BEHIND_S = 60.0
"""Groups that are so far behind are told of."""
SLICE = 1000
"""Partitions that are looked at before the loop may run again."""


def console_address(options: BrokerOptions) -> ConsoleAddress | None:
    """Return where the console listens, None without one; raise ConfigError."""
    if options.barnabas_console_listener is None:
        return None
    address = parse_address(options.barnabas_console_listener)
    check_exposure(
        address, insecure=options.barnabas_console_insecure or options.barnabas_console_ssl_enable
    )
    return address


class BrokerConsole:
    """The console of one broker that has started."""

    def __init__(self, broker: Broker, address: ConsoleAddress) -> None:
        """Wire it; raise ConfigError if its TLS cannot be used."""
        from barnabas import __version__

        options = broker.options
        self._tls = ConsoleTls(broker) if options.barnabas_console_ssl_enable else None
        self._diary_topic = DiaryTopic(
            broker.broker_id, broker.cluster, broker.partitions, broker.peers
        )
        written = broker.parts.diary
        self._diary = ClusterDiary(
            broker.journal.ring,
            None if written is None else written.own_keys,
            self._diary_topic.ends,
            self._diary_topic.read,
            broker.clock,
        )
        self._door = BrokerDoor(
            broker,
            Mode(options.barnabas_console_mode),
            self._tls.principal_of if self._tls is not None else None,
        )
        self.window = ConsoleWindow(
            broker.broker_id,
            __version__,
            broker.metrics,
            broker.cluster,
            broker.partitions,
            broker.logs,
            wall_ms=broker.now_ms,
            is_silent=lambda: broker.silence.is_silent,
            reached_by=partial(_reached_by, broker),
            diary=partial(_entries, self._diary),
            lag_seconds=partial(_lag_seconds, broker),
            behind=partial(_behind, broker),
            requests=RequestView(
                broker.parts.request_metrics,
                broker.parts.network,
                broker.clock,
                broker.now_ms,
                broker.timer.now_ms,
                partial(_topic_id, broker),
                partial(_fetch_sessions, broker),
            ),
        )
        self._hosts = options.barnabas_console_hosts
        self._exports = options.barnabas_console_export_enable
        self.server = ConsoleServer(
            address, self._load, self._tls.context if self._tls is not None else None
        )

    def _load(self) -> Callable[[], Hosting]:
        """Import the web server and build the pages; this runs on a thread."""
        from barnabas.console.app import build_app
        from barnabas.console.hosting import hosting_of

        return hosting_of(
            lambda: build_app(
                self._door,
                self.window,
                self.server.address,
                hosts=self._hosts,
                exports=self._exports,
            )
        )

    async def start(self) -> None:
        """Listen; raise ConfigError if the address cannot be bound."""
        await self.server.start()
        await self.window.start()
        if self._tls is not None:
            self._tls.start()

    async def stop(self) -> None:
        """Close the console's connections, and look no more."""
        await self.server.stop()
        await self.window.stop()
        if self._tls is not None:
            await self._tls.stop()
        self._door.close()
        self._diary_topic.close()


async def _entries(diary: ClusterDiary, limit: int, wanted: Concerns | None) -> Diary:
    """Return the newest entries of the cluster's diary: all, or those that are wanted."""
    await diary.refresh()
    entries = [
        DiaryEntry(
            each.last_ms or each.at_ms,
            each.event,
            each.subject,
            each.cause,
            sentence(each.event, each.cause, each.data),
            each.data,
            each.count,
            each.broker,
        )
        for each in diary.entries(limit, wanted or (lambda entry: True))
    ]
    return Diary(entries, diary.failure)


def _reached_by(broker: Broker) -> tuple[str, str]:
    """Return the listener by which brokers reach each other, and this broker's host there."""
    name = broker.parts.network.listeners.inter_broker
    return name, next((each.host for each in broker.endpoints if each.name == name), "")


def _topic_id(broker: Broker, name: str) -> Uuid:
    """Return the id of a topic; zeros for one that is unknown."""
    topic = broker.cluster.topic(name)
    return ZERO_UUID if topic is None else topic.topic_id


def _fetch_sessions(broker: Broker, name: str) -> set[int]:
    """Return the ids of the fetch sessions that read a topic here."""
    topic = broker.cluster.topic(name)
    count = 0 if topic is None else len(topic.partitions)
    return broker.partitions.fetch_sessions.readers_of((name, number) for number in range(count))


def _lag_seconds(broker: Broker, group: str) -> Mapping[tuple[str, int], float]:
    """Return the lag in seconds of a group that this broker coordinates, where it is known."""
    monitoring = broker.parts.monitoring
    lags = monitoring.consumer_lag
    if lags.watch():
        monitoring.refresh()
    return {
        (row.key.topic, row.key.partition): row.seconds
        for coordinator in lags.coordinators()
        for row in lags.of(coordinator, group)
        if row.seconds is not None
    }


async def _behind(broker: Broker) -> list[tuple[str, float]]:
    """Return the groups with members here that are far behind, the worst first."""
    monitoring = broker.parts.monitoring
    lags = monitoring.consumer_lag
    if lags.watch():
        monitoring.refresh()
    found = []
    looked_at = 0
    for coordinator in lags.coordinators():
        for name, group in list(coordinator.groups.items()):
            if not group.members:
                continue  # nobody reads, so nobody is behind
            rows = lags.of(coordinator, name)
            seconds = max((each.seconds for each in rows if each.seconds is not None), default=0.0)
            if seconds >= BEHIND_S:
                found.append((name, seconds))
            looked_at += 1 + len(rows)
            if looked_at >= SLICE:
                looked_at = 0
                await asyncio.sleep(0)
    return sorted(found, key=lambda each: -each[1])
