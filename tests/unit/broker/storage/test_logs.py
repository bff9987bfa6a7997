"""The logs of a broker over several directories, and what a stop leaves in them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.broker.handlers.test_topics import delete
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    produce,
    values_of,
    wait_for,
)
from tests.unit.broker.test_loop import settle

from barnabas.broker.broker import Broker
from barnabas.broker.storage import logs
from barnabas.config.broker import BrokerOptions
from barnabas.config.topic import TopicOptions
from barnabas.log.directory import CLEAN_SHUTDOWN, LogDirectory
from barnabas.log.files import DiskFiles
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition


def logs_in(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir())


def test_logs_are_spread(tmp_path: Path) -> None:
    """New logs go where the fewest are; a restart finds them where they were."""
    paths = [tmp_path / "a", tmp_path / "b"]
    with Serving(tmp_path, {"log.dirs": f"{paths[0]},{paths[1]}"}) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t", 6)
            for partition in range(6):
                produce(wire, "t", batch_of([f"p{partition}"]), partition=partition)
        before = [logs_in(path) for path in paths]
        assert Counter(map(len, before)) == {3: 2}
        serving.stop()
        serving.start()
        assert [logs_in(path) for path in paths] == before
        with serving.connect() as wire:
            for partition in range(6):
                assert values_of(fetch(wire, "t", partition=partition)) == [b"p%d" % partition]


def test_disks_are_loaded_side_by_side(tmp_path: Path) -> None:
    """Each waits for its own disk alone: here, none is done before both have begun."""
    both = threading.Barrier(2)

    class Waiting(DiskFiles):
        def read(self, path: str) -> bytes | None:
            if path.endswith("-0/leader-epoch-checkpoint"):
                both.wait(60)
            return super().read(path)

    paths = [str(tmp_path / name) for name in ("a", "b")]
    keys = [TopicPartition(name, 0) for name in ("s", "t")]
    options = TopicOptions.parse({"flush.messages": "1"})

    async def story() -> None:
        with ThreadPoolExecutor(4) as executor:
            first = logs.Logs(DiskFiles(), paths, executor, lambda: 0.0, bytes)
            for key in keys:
                log = first.open(key, b"i" * 16, options, 0, new=True)
                log.append_as_leader(bytearray(batch_of(["x"])), 0, 0)
            first.abandon()
            again = logs.Logs(Waiting(), paths, executor, lambda: 0.0, bytes)
            await again.load(lambda _: options, 0, 1)
            assert [log.topic_partition for log in again.all] == keys
            assert [log.recovery_point for log in again.all] == [1, 1]
            await again.close(0, 1)

    asyncio.run(story())


def test_deleted_logs_leave_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted topic's directory is renamed at once and removed after its delay."""
    removed_at: list[float] = []
    looked = threading.Event()
    purge = logs._purge

    def purge_slowly(directory: LogDirectory, path: str) -> None:
        removed_at.append(time.monotonic())
        assert looked.wait(60)
        purge(directory, path)

    monkeypatch.setattr(logs, "_purge", purge_slowly)
    with (
        Serving(tmp_path, {"log.segment.delete.delay.ms": 100}) as serving,
        serving.connect() as wire,
    ):
        create_topic(wire, "t")
        produce(wire, "t", batch_of(["x"]))
        assert logs_in(tmp_path) == ["t-0"]
        asked_at = time.monotonic()
        assert delete(wire, name="t").error_code == 0
        (renamed,) = logs_in(tmp_path)
        assert renamed.startswith("t-0.")
        assert renamed.endswith("-delete")
        looked.set()
        wait_for(lambda: logs_in(tmp_path) == [], "the directory is gone")
        # The loop counts whole milliseconds.
        assert removed_at[0] - asked_at > 0.098


def test_leftovers_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """A stop before the delay is over does not keep deleted data for ever."""
    with Serving(tmp_path, {"log.segment.delete.delay.ms": 3_600_000}) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            assert delete(wire, name="t").error_code == 0
        assert len(logs_in(tmp_path)) == 1
        serving.stop()
        serving.start()
        wait_for(lambda: logs_in(tmp_path) == [], "the directory is gone")


def test_removals_end_with_the_broker(tmp_path: Path) -> None:
    """On a loop that lives on, a stopped broker removes nothing more; its next life does."""
    options = BrokerOptions.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path),
            "log.segment.delete.delay.ms": "30",
        }
    )
    complaints: list[object] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        broker = Broker(options)
        await broker.start()
        endpoint = broker.endpoints[0]

        def make_and_delete() -> None:
            with Wire((endpoint.host, endpoint.port)) as wire:
                create_topic(wire, "t")
                delete(wire, name="t")

        await asyncio.to_thread(make_and_delete)
        await broker.stop()
        left = logs_in(tmp_path)
        await asyncio.sleep(0.06)
        assert logs_in(tmp_path) == left

    asyncio.run(story())
    assert complaints == []


def test_a_stop_waits_for_removals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that has begun ends before the directory is anybody else's."""
    begun, gate = threading.Event(), threading.Event()
    purge = logs._purge

    def purge_slowly(directory: LogDirectory, path: str) -> None:
        begun.set()
        assert gate.wait(60)
        purge(directory, path)

    monkeypatch.setattr(logs, "_purge", purge_slowly)

    async def story() -> None:
        with ThreadPoolExecutor(2) as executor:
            opened = logs.Logs(DiskFiles(), [str(tmp_path)], executor, lambda: 0.0, bytes)
            key = TopicPartition("t", 0)
            opened.open(key, b"i" * 16, TopicOptions.parse({}), 0, new=True)
            opened.delete(key, 0)
            await asyncio.to_thread(begun.wait)
            closing = asyncio.get_running_loop().create_task(opened.close(0, 1))
            while not (tmp_path / CLEAN_SHUTDOWN).exists():  # noqa: ASYNC110 - it is on a thread
                await asyncio.sleep(0)
            await settle()
            assert not closing.done()
            gate.set()
            await closing
            assert logs_in(tmp_path) == []

    asyncio.run(story())


def test_directories_that_disagree(tmp_path: Path) -> None:
    """Directories of two brokers cannot be put together."""
    for number in (0, 1):
        path = tmp_path / str(number)
        with Serving(path, {"broker.id": number, "log.dirs": path}):
            assert (path / "meta.properties").exists()
    options = BrokerOptions.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": f"{tmp_path / '0'},{tmp_path / '1'}",
        }
    )

    async def start() -> None:
        await Broker(options).start()

    with pytest.raises(ConfigError, match=r"meta\.properties"):
        asyncio.run(start())


def test_a_failed_start_leaves_nothing_behind(tmp_path: Path) -> None:
    """A broker that could not start lets go of its directories and ports."""
    with Serving(tmp_path / "first") as first:
        taken = first.address[1]
        options = {"listeners": f"PLAINTEXT://127.0.0.1:{taken}", "log.dirs": str(tmp_path / "b")}

        async def start() -> None:
            await Broker(BrokerOptions.parse(options)).start()

        with pytest.raises(ConfigError, match=str(taken)):
            asyncio.run(start())
        with Serving(tmp_path / "b", {"broker.id": -1}) as second, second.connect() as wire:
            create_topic(wire, "t")


@pytest.mark.parametrize(
    ("protocol", "option"),
    [("SSL", "ssl.keystore.location"), ("SASL_PLAINTEXT", "sasl.enabled.mechanisms=GSSAPI")],
)
def test_secured_listeners_without_what_they_need(
    tmp_path: Path, protocol: str, option: str
) -> None:
    """The option that is missing is named at the start."""
    options = {"listeners": f"{protocol}://127.0.0.1:0", "log.dirs": str(tmp_path)}
    options["inter.broker.listener.name"] = protocol

    async def start() -> None:
        await Broker(BrokerOptions.parse(options)).start()

    with pytest.raises(ConfigError, match=option):
        asyncio.run(start())


def test_a_log_that_is_not_understood_is_offline_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it changes, not even its checkpoints; others are served; it can be deleted."""
    with Serving(tmp_path) as serving:
        with serving.connect() as wire:
            for topic in ("good", "odd"):
                create_topic(wire, topic)
                for number in range(3):
                    produce(wire, topic, batch_of([f"{topic} {number}"]))
        serving.stop()
        victim = tmp_path / "odd-0" / f"{0:020d}.log"
        stored = victim.read_bytes()
        size = len(stored) // 3
        strange = stored[: size + 16] + b"\x03" + stored[size + 17 :]
        victim.write_bytes(strange)
        checkpoints = {path.name: path.read_text() for path in tmp_path.glob("*-checkpoint")}
        for _ in range(2):
            serving.start()
            said = f"log odd-0: offline, its files were not changed: {victim} at {size}: magic 3"
            assert said in caplog.text
            caplog.clear()
            with serving.connect() as wire:
                assert values_of(fetch(wire, "good")) == [b"good 0", b"good 1", b"good 2"]
                assert fetch(wire, "odd").error_code == ErrorCode.KAFKA_STORAGE_ERROR
                assert produce(wire, "odd", batch_of(["x"])).error_code in (
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                )
            serving.stop()
            assert victim.read_bytes() == strange
            for name, text in checkpoints.items():
                assert ("odd 0 " in (tmp_path / name).read_text()) == ("odd 0 " in text)
        victim.write_bytes(stored)
        serving.start()
        with serving.connect() as wire:
            assert values_of(fetch(wire, "odd")) == [b"odd 0", b"odd 1", b"odd 2"]
        serving.stop()
        victim.write_bytes(strange)
        serving.start()
        with serving.connect() as wire:
            assert delete(wire, name="odd").error_code == 0
            wait_for(lambda: "odd-0" not in logs_in(tmp_path), "the log is gone")
            create_topic(wire, "odd")
            assert values_of(fetch(wire, "odd")) == []
