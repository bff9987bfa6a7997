"""What is wrong with a pipeline, told before it runs."""

from __future__ import annotations

import itertools
import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")
pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.pipeline.checking import check, stored_positions
from barnabas.pipeline.sketch import sketch
from barnabas.pipeline.spec import Spec, read_spec
from barnabas.pipeline.templates import Project

pytestmark = pytest.mark.filterwarnings("default")  # what PySpark warns of is its own

NUMBERS = itertools.count()


class Shop:
    """A project with topics of its own."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        number = next(NUMBERS)
        self.project = Project(
            directory, bootstrap, source=f"clicks-{number}", target=f"counts-{number}"
        )
        self.project.write()
        self.path = directory / "transformations" / "clicks.py"
        self.bootstrap = bootstrap

    def create(self, *topics: str) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, 1, 1) for topic in topics or self.project.topics])

    def replace(self, old: str, new: str) -> None:
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    @property
    def spec(self) -> Spec:
        return read_spec(self.project.directory)

    def wrong(self) -> list[str]:
        return check(self.spec, sketch(self.spec))

    def leave_checkpoint(self, topic: str, topic_id: str, offset: int) -> None:
        folder = self.project.directory / "storage/_checkpoints/spark_catalog/default"
        folder = folder / "dead_letters" / "bad_clicks"
        stored = {
            "version": 1,
            "tasks": 1,
            "topics": {topic: {"id": topic_id, "offsets": {"0": offset}}},
        }
        for version, batch, text in (("0", "3", "{}"), ("1", "9", "{}"), ("1", "10", None)):
            file = folder / version / "offsets" / batch
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"v1\n{{}}\n{text or json.dumps(stored)}")


@pytest.fixture
def shop(tmp_path: Path, barnabas_bootstrap: str) -> Shop:
    return Shop(tmp_path, barnabas_bootstrap)


def test_nothing_is_wrong_with_a_new_project(shop: Shop) -> None:
    shop.create()
    assert shop.wrong() == []


def test_topics_that_do_not_exist_are_all_named(shop: Shop) -> None:
    project = shop.project
    assert [line.partition(": ")[2] for line in shop.wrong()] == [
        f"subscribe={project.source}: topic {project.source} does not exist; create it with: "
        "barnabas topics create",
        f"topic={project.target}: the topic does not exist; create it with: barnabas topics "
        f"create {project.target}",
        f"topic={project.dead_letters}: the topic does not exist; create it with: barnabas "
        f"topics create {project.dead_letters}",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("subscribe=", "subscribed=", "subscribed: no such option; did you mean subscribe?"),
        ('"exactlyOnce": "true"', '"exactlyOnced": "true"', "did you mean exactlyOnce?"),
        ('valueFormat="json"', 'valueFormat="jsn"', "valueFormat=jsn: must be one of"),
        ("startingOffsets=", "startingOffset=", "did you mean startingOffsets?"),
        ("kafka.bootstrap.servers", "kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ('target="dead_letters"', 'target="dead"', "bad_clicks: target=dead: must be one of"),
    ],
)
def test_wrong_options_are_told_with_their_place(
    shop: Shop, old: str, new: str, message: str
) -> None:
    shop.replace(old, new)
    wrong = shop.wrong()
    assert wrong
    assert any(message in line for line in wrong), wrong
    assert all(line.startswith("transformations/clicks.py:") for line in wrong)


def test_brokers_that_do_not_answer_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.pipeline.checking.PATIENCE_MS", 300)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        shop = Shop(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}")
        [line] = shop.wrong()
    assert f"kafka.bootstrap.servers={shop.bootstrap}: no broker responds" in line


def test_a_checkpoint_that_fits_is_read(shop: Shop) -> None:
    shop.create()
    with KafkaProducer(bootstrap_servers=shop.bootstrap) as producer:
        producer.send(shop.project.source, b"1")
    shop.leave_checkpoint(shop.project.source, "", 1)
    found = sketch(shop.spec)
    [flow] = [each for each in found.flows if each.name == "bad_clicks"]
    positions = stored_positions(shop.spec, found, flow)
    assert positions is not None
    assert [str(place) for place in positions.offsets] == [f"{shop.project.source}-0"]
    assert shop.wrong() == []


def test_a_checkpoint_of_another_topic_is_told(shop: Shop) -> None:
    shop.create()
    shop.leave_checkpoint("orders", "", 1)
    [line] = shop.wrong()
    assert "bad_clicks: the checkpoint is for topic orders, the query reads" in line
    assert line.endswith("--full-refresh dead_letters starts over")


def test_a_checkpoint_of_a_topic_that_was_made_anew_is_told(shop: Shop) -> None:
    shop.create()
    shop.leave_checkpoint(shop.project.source, "AAAAAAAAAAAAAAAAAAAAAQ", 1)
    [line] = shop.wrong()
    assert "the topic was recreated" in line
