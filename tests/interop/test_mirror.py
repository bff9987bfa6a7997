"""Mirrors from Apache Kafka and to it: the same records, the same promises."""

from __future__ import annotations

import json
import subprocess
from random import Random

import pytest
from tests.system.mirroring import (
    closing,
    cluster_id,
    command,
    create,
    mirror,
    read,
    send,
    some_shapes,
)

from barnabas import KafkaConsumer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.mark.parametrize("from_apache", [True, False])
def test_records_and_offsets_of_groups_move_over(
    apache_bootstrap: str, barnabas_bootstrap: str, name: str, from_apache: bool
) -> None:
    source, target = apache_bootstrap, barnabas_bootstrap
    if not from_apache:
        source, target = target, source
    create(source, name, 2, cleanup_policy="compact,delete", segment_bytes="1048576")
    sent = {index: some_shapes(Random(index), 500) for index in range(2)}
    # A compacted topic takes no record without a key.
    sent = {index: [each for each in all if each.key is not None] for index, all in sent.items()}
    for index, shapes in sent.items():
        send(source, name, index, shapes)
    words = ("--topics", name.replace(".", r"\."), "--name", name)
    assert mirror(source, target, *words)["records"] == sum(map(len, sent.values()))
    assert mirror(source, target, *words)["records"] == 0
    source_id = cluster_id(source)
    copies = {index: read(target, name, index, source_id) for index in sent}
    for index, shapes in sent.items():
        assert copies[index].shapes == shapes
        assert copies[index].origins == list(range(len(shapes)))

    place = TopicPartition(name, 1)
    with closing(KafkaConsumer(bootstrap_servers=source, group_id=name)) as consumer:
        consumer.assign([place])
        consumer.seek(place, 123)
        consumer.commit()
    offsets = command(source, target, "--topics", ".*", "--groups", name, "--json")
    offsets.insert(4, "offsets")
    done = subprocess.run(offsets, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    [found] = json.loads(done.stdout)
    assert found["outcome"] == "committed"
    with closing(KafkaConsumer(bootstrap_servers=target, group_id=name)) as consumer:
        assert consumer.committed(place) == found["target_offset"]
    assert copies[1].origins[copies[1].offsets.index(found["target_offset"])] == 123
