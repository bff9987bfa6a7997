"""A broker notes what it decides: each test compares the entries with what was done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.handlers.test_client_quotas import alter, entry
from tests.unit.broker.handlers.test_configs import SET, TOPIC, change
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    metadata,
    produce,
    wait_for,
)

from barnabas.broker.network.client_quotas import CAUSES
from barnabas.diary.entry import Entry
from barnabas.metrics.catalogue.diary import ENTRIES
from barnabas.metrics.catalogue.loop import LOOP_LAG
from barnabas.model.error_codes import ErrorCode
from barnabas.quotas.quota_keys import PRODUCER_BYTE_RATE
from barnabas.records.builder import build_batch
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    options = {
        "auto.create.topics.enable": "true",
        "quota.window.num": 2,
        "max.connections.per.ip.overrides": "127.0.0.1:50",
    }
    with Serving(tmp_path, options) as running:
        yield running


def entries(serving: Serving, event: str) -> list[Entry]:
    journal = serving.broker.journal
    return serving.inside(lambda: [each for each in journal.ring if each.event == event])


def expect(serving: Serving, event: str) -> Entry:
    """Wait for an entry of an event, and return the newest."""
    wait_for(lambda: entries(serving, event), f"an entry of {event}")
    return entries(serving, event)[-1]


def test_a_term(serving: Serving) -> None:
    elected = expect(serving, "controller.elected")
    assert (elected.subject, elected.cause, elected.data) == ("broker:0", "elected", {"epoch": 1})
    controller, loop = serving.broker.controller, serving.broker.loop
    asyncio.run_coroutine_threadsafe(controller.resign(), loop).result(10)
    resigned = expect(serving, "controller.resigned")
    assert (resigned.cause, resigned.data) == ("overtaken", {"epoch": 1})


def test_a_session_is_lost(serving: Serving) -> None:
    broker = serving.broker
    serving.inside(broker.session_lost)
    assert expect(serving, "session.lost").subject == "broker:0"
    serving.inside(broker.session_back)
    back = expect(serving, "session.back")
    assert back.cause == "renewed"
    assert back.data["epoch"] == broker.broker_epoch
    assert back.data["took_ms"] >= 0


def test_the_loop_stands_still(serving: Serving) -> None:
    """It is held up here by something that neither computes nor says what it is."""

    def stalls() -> int:
        found = entries(serving, "loop.stall")
        return sum(each.count for each in found if each.cause == "waiting")

    serving.wait_inside(lambda: serving.broker.metrics.value(LOOP_LAG) >= 1, "the loop is measured")
    before = stalls()
    serving.inside(lambda: time.sleep(0.4))
    wait_for(lambda: stalls() > before, "an entry of loop.stall")
    stall = next(each for each in entries(serving, "loop.stall") if each.cause == "waiting")
    assert stall.subject == "broker:0"
    assert stall.data["ms"] >= 100
    assert stall.data["used_ms"] < stall.data["ms"] / 2


def test_roles_are_in_the_state_change_log(serving: Serving) -> None:
    def count(event: str) -> float:
        return serving.inside(lambda: serving.broker.metrics.value(ENTRIES, event))

    wire = serving.connect()
    create_topic(wire, "t", 2)
    assert count("role.leads") == 2
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
    assert count("role.stopped") > 0
    assert entries(serving, "role.leads") == []


def test_a_request_of_an_older_controller(serving: Serving) -> None:
    control, loop = serving.broker.control, serving.broker.loop

    def send(**epochs: int) -> ErrorCode:
        request = UpdateMetadataRequest(controller_id=9, **epochs)
        answer: Any = asyncio.run_coroutine_threadsafe(control.take(request), loop).result(10)
        return ErrorCode.of(answer.error_code)

    epoch = serving.broker.broker_epoch
    assert send(controller_epoch=0, broker_epoch=epoch) is ErrorCode.STALE_CONTROLLER_EPOCH
    refused = expect(serving, "role.refused")
    assert refused.cause == "stale-controller-epoch"
    assert refused.data == {"request": "UpdateMetadata", "controller": 9, "epoch": 0, "known": 1}
    assert send(controller_epoch=1, broker_epoch=epoch - 1) is ErrorCode.STALE_BROKER_EPOCH
    assert expect(serving, "role.refused").cause == "stale-broker-epoch"


def test_a_quota_is_exceeded(serving: Serving) -> None:
    wire = serving.connect()
    create_topic(wire, "t")
    assert alter(wire, entry({"client-id": "test"}, {PRODUCER_BYTE_RATE: 1_000.0}))
    assert produce(wire, "t", batch_of([b"x" * 5_000])).error_code == 0
    begun = expect(serving, "throttle.begin")
    assert begun.subject == "client:test@127.0.0.1"
    assert begun.cause == "produce" == CAUSES[PRODUCER_BYTE_RATE]
    assert begun.data["entity"] == "client-id test"
    assert begun.data["limit"] == 1_000.0
    assert begun.data["rate"] > 1_000.0
    assert begun.data["delay_ms"] > 0
    assert begun.data["api"] == "Produce"
    quotas = serving.broker.quotas
    serving.inside(quotas.end_throttles)
    assert entries(serving, "throttle.end") == [], "it is throttled now"
    serving.let_pass(600_000)
    serving.inside(quotas.end_throttles)
    ended = expect(serving, "throttle.end")
    assert ended.data["throttles"] == 1
    assert ended.data["longest_ms"] == ended.data["took_ms"] == begun.data["delay_ms"]


def test_records_are_rejected(serving: Serving) -> None:
    wire = serving.connect()

    def rejected(cause: str, topic: str, records: bytes) -> Entry:
        result = produce(wire, topic, records)
        assert result.error_code
        found = expect(serving, "reject.produce")
        assert found.cause == cause
        assert found.subject == "client:test@127.0.0.1"
        assert found.data["partition"] == f"{topic}-0"
        assert found.data["code"] == ErrorCode.of(result.error_code).name
        assert found.data["principal"] == "User:ANONYMOUS"
        assert found.data["size"] == len(records)
        return found

    create_topic(wire, "small", configs={"max.message.bytes": "100"})
    too_large = rejected("too-large", "small", batch_of([b"x" * 1_000]))
    assert too_large.data["limit"] == 100
    create_topic(wire, "compacted", configs={"cleanup.policy": "compact"})
    rejected("no-key-compacted", "compacted", batch_of([b"x"]))
    create_topic(wire, "t", configs={"message.timestamp.after.max.ms": "1000"})
    rejected("bad-timestamp", "t", build_batch([(2**50, b"k", b"v")]))
    good = batch_of([b"x"])
    rejected("corrupt", "small", good[:-1] + bytes([good[-1] ^ 1]))
    create_topic(wire, "sequenced")
    numbers = {"producer_id": 5, "producer_epoch": 1}
    first = batch_of([b"x"], base_sequence=0, **numbers)
    assert produce(wire, "sequenced", first).error_code == 0
    gap = rejected("sequence", "sequenced", batch_of([b"x"], base_sequence=7, **numbers))
    assert (gap.data["producer_id"], gap.data["producer_epoch"]) == (5, 1)
    old = batch_of([b"x"], base_sequence=1, producer_id=5, producer_epoch=0)
    fenced = rejected("fenced", "sequenced", old)
    assert fenced.data["producer_epoch"] == 0
    assert produce(wire, "unknown-topic", good).error_code
    assert expect(serving, "reject.produce").cause == "fenced", "a stale client is no news"


def test_a_connection_is_rejected(serving: Serving) -> None:
    with serving.connect() as wire:
        wire.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wire.expect_close()
    large = expect(serving, "reject.connection")
    assert (large.subject, large.cause) == ("client:127.0.0.1", "frame-size")
    assert "socket.request.max.bytes" in large.data["reason"]
    serving.lines.clear()
    with serving.connect() as wire:
        wire.socket.sendall(bytes.fromhex("0000000b 0003 0063 00000001 ffff 00"))
        wire.expect_close()
    assert expect(serving, "reject.connection").cause == "unsupported-version"
    serving.lines.clear()


def test_too_many_connections_and_idle_ones(tmp_path: Path) -> None:
    options = {
        "max.connections.per.ip.overrides": "127.0.0.1:1",
        "connections.max.idle.ms": 200,
    }
    with Serving(tmp_path, options) as serving:
        serving.connect()
        with serving.connect() as second:
            second.expect_close()
        limited = expect(serving, "reject.connection")
        assert limited.cause == "limit"
        assert "max.connections.per.ip=1" in limited.data["reason"]
        serving.lines.clear()
        wait_for(
            lambda: expect(serving, "reject.connection").cause == "idle",
            "the idle connection is closed",
        )
        assert "connections.max.idle.ms=200" in expect(serving, "reject.connection").data["reason"]


def test_what_clients_change(serving: Serving) -> None:
    wire = serving.connect()
    create_topic(wire, "t", 3)
    created = expect(serving, "topic.created")
    assert (created.subject, created.cause) == ("topic:t", "client")
    assert created.data["partitions"] == 3
    assert created.data["host"] == "127.0.0.1"
    change(wire, TOPIC, "t", ("retention.ms", SET, "5000"))
    changed = expect(serving, "config.changed")
    assert changed.subject == "topic:t"
    assert changed.data["changes"] == "set retention.ms=5000"
    assert alter(wire, entry({"user": "ada"}, {PRODUCER_BYTE_RATE: 1_000.0}))
    quota = expect(serving, "quota.changed")
    assert quota.subject == "quota:user ada"
    metadata(wire, "auto", create=True)
    wait_for(
        lambda: [each.cause for each in entries(serving, "topic.created")][-1] == "automatic",
        "the topic is created",
    )
    loop = serving.broker.loop
    asyncio.run_coroutine_threadsafe(serving.broker.groups.ensure_topic(), loop).result(30)
    assert expect(serving, "topic.created").cause == "internal"
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
    assert expect(serving, "topic.deleted").subject == "topic:t"


def test_a_client_is_denied(tmp_path: Path) -> None:
    options = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Serving(tmp_path, options) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        _add_acl(wire, "User:ANONYMOUS", allow=False)
        assert expect(serving, "acl.changed").data["change"] == "acl added"
        result = produce(wire, "t", batch_of([b"x"]))
        assert result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        denied = expect(serving, "reject.authorization")
        assert denied.cause == "denied"
        assert denied.subject == "client:User:ANONYMOUS@127.0.0.1"
        assert (denied.data["operation"], denied.data["resource"]) == ("WRITE", "Topic:t")
        assert denied.data["api"] == "Produce"
        assert "DENY" in denied.data["rule"]
        _add_acl(wire, "User:somebody-else", allow=True, topic="u")
        create_topic(wire, "u2")
        _add_acl(wire, "User:somebody-else", allow=True, topic="u2")
        assert produce(wire, "u2", batch_of([b"x"])).error_code
        other = expect(serving, "reject.authorization")
        assert other.cause == "no-rule"
        assert other.data["denied"] == ["WRITE on Topic:u2"]


def _add_acl(wire: Wire, principal: str, *, allow: bool, topic: str = "t") -> None:
    from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest

    creation = AclCreation(
        resource_type=2,
        resource_name=topic,
        resource_pattern_type=3,
        principal=principal,
        host="*",
        operation=4,
        permission_type=3 if allow else 2,
    )
    [result] = wire.ask(CreateAclsRequest(creations=[creation]), 3).results
    assert result.error_code == 0, result


def test_segments_are_deleted(tmp_path: Path) -> None:
    hour_ms = 3_600_000
    with Serving(tmp_path, {"log.retention.check.interval.ms": 20}) as serving:
        wire = serving.connect()
        now_ms = serving.broker.now_ms()
        rules = {"time": {"retention.ms": str(hour_ms)}, "size": {"retention.bytes": "1500"}}
        for cause, configs in rules.items():
            create_topic(wire, cause, configs={"segment.bytes": "1000", **configs})
            at_ms = now_ms - 2 * hour_ms if cause == "time" else now_ms
            for _ in range(30):
                batch = build_batch([(at_ms, b"k", b"v" * 100)])
                assert produce(wire, cause, batch).error_code == 0
            wait_for(
                lambda cause=cause: [  # type: ignore[misc]
                    each for each in entries(serving, "segment.deleted") if each.cause == cause
                ],
                f"segments are deleted by {cause}",
            )
            found = [each for each in entries(serving, "segment.deleted") if each.cause == cause][
                -1
            ]
            assert found.subject == f"{cause}-0"
            assert found.data["broker"] == 0
            assert found.data["segments"] > 0
            assert found.data["bytes"] > 0
            assert 0 < found.data["offset"] <= 30
        create_topic(wire, "start-offset", configs={"segment.bytes": "1000"})
        for _ in range(30):
            batch = build_batch([(now_ms, b"k", b"v" * 100)])
            assert produce(wire, "start-offset", batch).error_code == 0
        log = serving.broker.partitions[("start-offset", 0)].log
        serving.inside(lambda: log.delete_records_before(20))
        wait_for(
            lambda: expect(serving, "segment.deleted").cause == "start-offset",
            "what lies below the log start is deleted",
        )


def test_a_crash_and_its_recovery(tmp_path: Path) -> None:
    serving = Serving(tmp_path).start()
    wire = serving.connect()
    create_topic(wire, "t")
    assert produce(wire, "t", batch_of([b"x"])).error_code == 0
    serving.kill()
    with Serving(tmp_path) as again:
        recovered = expect(again, "log.recovered")
        assert recovered.cause == "unclean-shutdown"
        assert recovered.data["logs"] == 1
        assert recovered.data["directory"] == str(tmp_path)
