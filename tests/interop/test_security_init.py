"""Java's tools and Spark's own connector, by the files that `barnabas security init` writes."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.secured_files import SecuredCluster
from tests.system.spark_session import jvm, local_session  # noqa: F401
from tools import spark_connector
from tools.apache_kafka import Distribution, Unavailable

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """A broker to whom clients must show a certificate besides their password."""
    made = SecuredCluster(tmp_path_factory.mktemp("secured"), "--client-auth", "required")
    try:
        made.start()
        yield made
    finally:
        made.stop()
    assert [each for each in made.secrets() if each in made.said] == []


def run(
    kafka: Distribution, cluster: SecuredCluster, name: str, *words: str, input: str = ""
) -> tuple[int, str]:
    where = f"127.0.0.1:{cluster.port}"
    done = kafka.run(name, "--bootstrap-server", where, *words, input=input)
    return done.returncode, done.stdout + done.stderr


def test_java_produces_and_consumes(kafka: Distribution, cluster: SecuredCluster) -> None:
    options = cluster.client() / "client.properties"
    topic = f"app-{kafka.release}"
    code, said = run(
        *(kafka, cluster, "kafka-console-producer", f"--topic={topic}"),
        f"--producer.config={options}",
        input="from Java\n",
    )
    assert code == 0, said
    code, said = run(
        *(kafka, cluster, "kafka-console-consumer", f"--topic={topic}", "--from-beginning"),
        *(f"--consumer.config={options}", "--group=app-java", "--max-messages=1"),
        "--timeout-ms=60000",
    )
    assert code == 0, said
    assert "from Java" in said.splitlines()


def test_java_administers(kafka: Distribution, cluster: SecuredCluster) -> None:
    admin = f"--command-config={cluster.path / 'admin.properties'}"
    app = f"--command-config={cluster.client() / 'client.properties'}"
    topic = f"admin-{kafka.release}"
    code, said = run(kafka, cluster, "kafka-topics", admin, "--create", f"--topic={topic}")
    assert code == 0, said
    code, said = run(kafka, cluster, "kafka-acls", admin, "--list", "--principal=User:app")
    assert code == 0, said
    assert "name=app-, patternType=PREFIXED" in said
    code, said = run(kafka, cluster, "kafka-topics", app, "--create", "--topic=others")
    assert code == 1
    assert "TopicAuthorizationException" in said


def test_java_is_refused_with_a_wrong_password(
    kafka: Distribution, cluster: SecuredCluster
) -> None:
    wrong = f"--command-config={cluster.stranger() / 'client.properties'}"
    code, said = run(kafka, cluster, "kafka-topics", wrong, "--list")
    assert code == 1
    assert "SaslAuthenticationException" in said


@pytest.mark.filterwarnings("default")  # what PySpark warns of is its own
def test_the_connector_of_spark(
    cluster: SecuredCluster,
    jvm: None,  # noqa: F811
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    try:
        theirs = spark_connector.fetch()
    except Unavailable as why:
        pytest.skip(str(why))
    options = runpy.run_path(str(cluster.client() / "spark_example.py"))["OPTIONS"]
    with local_session(tmp_path, jars=theirs.setting) as spark:
        row = spark.sql("SELECT 'from the connector' AS value")
        row.write.format("kafka").options(**options).option("topic", "app-spark").save()
        for name in ("kafka", "barnabas"):
            read = spark.read.format(name).options(**options).option("subscribe", "app-spark")
            assert [bytes(each["value"]) for each in read.load().collect()] == [
                b"from the connector"
            ]
