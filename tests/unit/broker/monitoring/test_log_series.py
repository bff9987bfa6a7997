"""Directories that failed, what a start recovered, and what retention deleted."""

from __future__ import annotations

from pathlib import Path

from tests.unit.broker.monitoring.scraping import Series, scraped
from tests.unit.broker.serving import Serving, batch_of, create_topic, produce

from barnabas.model.errors import StorageError
from barnabas.records.builder import build_batch


def scrape(serving: Serving) -> Series:
    return serving.inside(lambda: scraped(serving.broker.metrics))


def test_a_recovery_is_shown_until_the_next_start(tmp_path: Path) -> None:
    first = f'{{logDirectory="{tmp_path}"}}'
    serving = Serving(tmp_path).start()
    create_topic(serving.connect(), "t", 3)
    assert scrape(serving)[f"barnabas_log_recovered_logs{first}"] == 0
    serving.kill()
    serving.start()
    found = scrape(serving)
    assert found[f"barnabas_log_recovered_logs{first}"] == 3
    assert found[f"barnabas_log_recovery_seconds{first}"] > 0
    assert found[f'kafka_log_logmanager_remaininglogstorecover{{dir="{tmp_path}"}}'] == 0
    serving.stop()
    with Serving(tmp_path) as again:
        found = scrape(again)
        assert found[f"barnabas_log_recovered_logs{first}"] == 0
        assert found[f"barnabas_log_recovery_seconds{first}"] == 0


def test_a_directory_that_fails_is_offline_with_its_replicas(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with Serving(tmp_path, {"log.dirs": f"{one},{two}"}) as serving:
        create_topic(serving.connect(), "t", 4)
        found = scrape(serving)
        assert found["kafka_log_logmanager_offlinelogdirectorycount"] == 0
        assert found[f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{two}"}}'] == 0
        assert found["kafka_server_replicamanager_offlinereplicacount"] == 0

        def fail() -> None:
            failure = StorageError("the disk is gone")
            failure.__cause__ = OSError(5, "Input/output error")
            serving.broker.log_failures.of_directory(str(two), failure)

        serving.inside(fail)
        serving.expect_line("is offline")
        found = scrape(serving)
        assert found["kafka_log_logmanager_offlinelogdirectorycount"] == 1
        assert found[f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{one}"}}'] == 0
        assert found[f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{two}"}}'] == 1
        assert found["kafka_server_replicamanager_offlinereplicacount"] == 2


def test_flushes_and_deletions_are_counted(tmp_path: Path) -> None:
    configs = {
        "flush.messages": "1",
        "segment.bytes": "1000",
        "retention.bytes": "1000",
        "file.delete.delay.ms": "0",
    }
    with Serving(tmp_path, {"log.retention.check.interval.ms": 20}) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=configs)
        for _ in range(40):
            rows = [(serving.broker.now_ms(), b"k", b"v" * 100)]
            assert produce(wire, "t", build_batch(rows)).error_code == 0
        log = serving.broker.partitions["t", 0].log
        written = 40 * len(build_batch([(1_700_000_000_000, b"k", b"v" * 100)]))
        serving.wait_inside(lambda: log.size_bytes <= 2000, "old segments are deleted")

        def settled() -> bool:
            found = scraped(serving.broker.metrics)
            deleted = found["barnabas_log_retention_deleted_bytes_total"]
            return deleted + log.size_bytes == written

        serving.wait_inside(settled, "all that is gone was counted")
        found = scrape(serving)
        assert found["barnabas_log_retention_deleted_segments_total"] >= 3
        assert found["kafka_log_logflushstats_logflushrateandtimems"] >= 40
        produce(wire, "t", batch_of(["x"]))
