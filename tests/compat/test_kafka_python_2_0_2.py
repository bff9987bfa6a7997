"""kafka-python 2.0.2 (2020), which many programs still pin: old versions of every request.

It cannot share a process with the newest release, so each act is a child process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.compat.samples import CODECS, DEPS, ROOMY_BYTES, SIZES, Sample, make_samples

RELEASE = DEPS / "kafka-python-2.0.2"
CLIENT = Path(__file__).parent / "kafka_python_2_0_2" / "client.py"

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(
        sys.version_info >= (3, 12), reason="kafka-python 2.0.2 does not import on Python 3.12"
    ),
    pytest.mark.skipif(
        not RELEASE.is_dir(), reason="kafka-python 2.0.2 is not there (make deps fetches it)"
    ),
]

Act = Callable[..., Any]


@pytest.fixture
def act(bootstrap: str) -> Act:
    """Do one act in a child process and return its answer."""

    def run(name: str, **arguments: Any) -> Any:
        done = subprocess.run(
            [sys.executable, str(CLIENT), bootstrap, name],
            input=json.dumps(arguments),
            env={**os.environ, "PYTHONPATH": str(RELEASE)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def as_json(sample: Sample) -> dict[str, Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode("latin-1")

    return {
        "key": text(sample.key),
        "value": text(sample.value),
        "timestamp_ms": sample.timestamp_ms,
        "headers": [[key, text(value)] for key, value in sample.headers],
    }


def test_creates_describes_and_deletes_topics(act: Act, name: str) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    created = act("create", topic=name, partitions=3, configs=configs)
    assert created == {"listed": True, "partitions": [0, 1, 2]}
    described = act("describe_configs", topic=name)
    assert {option: described[option] for option in configs} == configs
    assert act("create", topic=name) == {"error": "TopicAlreadyExistsError"}
    assert act("delete", topic=name) == {}
    assert act("delete", topic=name) == {"error": "UnknownTopicOrPartitionError"}


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip_by_codec(act: Act, name: str, codec: str) -> None:
    act("create", topic=name)
    samples = [as_json(sample) for sample in make_samples()]
    chosen = None if codec == "none" else codec
    sent = act("send", topic=name, samples=samples, compression_type=chosen)
    assert sent == list(range(40))
    messages = act("read", topic=name, count=40)
    assert [message.pop("offset") for message in messages] == list(range(40))
    assert messages == samples


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(act: Act, name: str, acks: int | str) -> None:
    act("create", topic=name)
    samples = [as_json(sample) for sample in make_samples()]
    act("send", topic=name, samples=samples, acks=acks)
    messages = act("read", topic=name, count=40)
    assert [message.pop("offset") for message in messages] == list(range(40))
    assert messages == samples


def test_messages_of_one_byte_to_ten_megabytes(act: Act, name: str) -> None:
    act("create", topic=name, configs={"max.message.bytes": str(ROOMY_BYTES)})
    act("send_sizes", topic=name, sizes=SIZES, max_request_size=ROOMY_BYTES)
    assert act("read_sizes", topic=name, count=len(SIZES)) == list(SIZES)


def test_a_message_over_the_topics_limit_is_refused(act: Act, name: str) -> None:
    act("create", topic=name, configs={"max.message.bytes": "2000"})
    assert act("send_sizes", topic=name, sizes=[5000]) == {"error": "MessageSizeTooLargeError"}


def test_reads_from_offset_time_beginning_and_end(act: Act, name: str) -> None:
    act("create", topic=name)
    samples = make_samples()
    act("send", topic=name, samples=[as_json(s) for s in samples], batch_size=500)
    assert act("read", topic=name, count=1, offset=23)[0]["offset"] == 23
    assert act("offsets", topic=name, timestamp_ms=samples[17].timestamp_ms) == {
        "beginning": 0,
        "end": 40,
        "for_time": 17,
        "position_at_end": 40,
        "position_at_beginning": 0,
    }
    assert act("offsets", topic=name, timestamp_ms=samples[-1].timestamp_ms + 1)["for_time"] is None
    assert act("read", topic=name, count=1, offset=999) == {"error": "OffsetOutOfRangeError"}


def test_alters_topic_configs(act: Act, name: str) -> None:
    act("create", topic=name, configs={"retention.ms": "1000000"})
    assert act("alter_configs", topic=name, configs={"max.message.bytes": "5000"}) == {"code": 0}
    described = act("describe_configs", topic=name)
    assert described["max.message.bytes"] == "5000"
    assert described["retention.ms"] == "604800000"


def test_creates_partitions(act: Act, name: str) -> None:
    act("create", topic=name)
    assert act("create_partitions", topic=name, count=4) == {}
    assert act("create_partitions", topic=name, count=2) == {"error": "InvalidPartitionsError"}


def test_describes_the_cluster(act: Act, bootstrap: str) -> None:
    cluster = act("describe_cluster")
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker["node_id"]


def test_a_program_sees_the_same_with_ours(
    quick_bootstrap: str, new_name: Callable[[], str]
) -> None:
    program = CLIENT.with_name("program.py")

    def run(root: str) -> Any:
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", str(program), root, quick_bootstrap, new_name()],
            env={**os.environ, "PYTHONPATH": str(RELEASE)},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert ran.returncode == 0, ran.stderr
        return {name: found for name, *found in json.loads(ran.stdout)}

    theirs, ours = run("kafka"), run("barnabas")
    # Groups have their topics' names, which differ.
    assert len(theirs.pop("groups")[0]) == len(ours.pop("groups")[0]) == 1
    assert ours == theirs
