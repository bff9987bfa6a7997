"""Java's tools over TLS, with stores of every kind, and their words for wrong certificates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.certificates import Authority, Issued
from tests.unit.broker.encrypted import CLIENT, ROOT, EncryptedServing
from tools.apache_kafka import Distribution

pytestmark = pytest.mark.interop

PASSWORD = "changeit"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EncryptedServing]:
    """A broker to whom clients must show certificates."""
    options = {"ssl.client.auth": "required"}
    with EncryptedServing(tmp_path_factory.mktemp("secured"), options) as serving:
        yield serving


def properties(directory: Path, kind: str, issued: Issued | None, authority: Authority) -> Path:
    """Write the options of a Java client, and its stores."""
    write = {"JKS": "write_jks", "PKCS12": "write_pkcs12"}.get(kind)
    lines = ["security.protocol=SSL", f"ssl.truststore.type={kind}"]
    if write is None:
        lines.append(f"ssl.truststore.location={authority.write(directory / 'trust')}")
    else:
        trusted = getattr(authority, write)(directory / "trust", PASSWORD)
        lines += [f"ssl.truststore.location={trusted}", f"ssl.truststore.password={PASSWORD}"]
    if issued is not None:
        lines.append(f"ssl.keystore.type={kind}")
        if write is None:
            lines.append(f"ssl.keystore.location={issued.write_pem(directory / 'own')}")
        else:
            own = getattr(issued, write)(directory / "own", PASSWORD)
            lines += [
                f"ssl.keystore.location={own}",
                f"ssl.keystore.password={PASSWORD}",
                f"ssl.key.password={PASSWORD}",
            ]
    path = directory / "client.properties"
    path.write_text("\n".join(lines))
    return path


def run(
    kafka: Distribution,
    secured: EncryptedServing,
    name: str,
    arguments: Sequence[str],
    input: str = "",
) -> tuple[int, str]:
    host, port = secured.address
    done = kafka.run(name, "--bootstrap-server", f"{host}:{port}", *arguments, input=input)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_java_produces_and_consumes_over_mutual_tls(
    kafka: Distribution, secured: EncryptedServing, tmp_path: Path, kind: str
) -> None:
    """The stores are our own writing: that Java reads them proves the JKS of other tests, too."""
    options = properties(tmp_path, kind, CLIENT, ROOT)
    topic = f"{kind}-{kafka.release}"
    sent = [f"--topic={topic}", f"--producer.config={options}"]
    lines = "".join(f"{number}\n" for number in range(100))
    code, said = run(kafka, secured, "kafka-console-producer", sent, lines)
    assert code == 0, said
    asked = [f"--topic={topic}", f"--consumer.config={options}", "--from-beginning"]
    limits = ["--max-messages=100", "--timeout-ms=30000"]
    code, said = run(kafka, secured, "kafka-console-consumer", [*asked, *limits])
    assert code == 0, said
    assert [line for line in said.splitlines() if line.isdigit()] == lines.split()
    secured.expect_no_lines()


@pytest.mark.parametrize(
    ("issued", "authority", "line"),
    [
        (None, ROOT, "the client has no certificate"),
        (Authority("stranger").issue("mallory"), ROOT, "unable to get local issuer certificate"),
        (ROOT.issue("late", days=(-9, -1)), ROOT, "certificate has expired"),
        (CLIENT, Authority("another"), "the peer gave up: certificate unknown"),
    ],
    ids=["no certificate", "untrusted", "expired", "wrong broker"],
)
def test_java_says_that_the_handshake_failed_and_gives_up(
    kafka: Distribution,
    secured: EncryptedServing,
    tmp_path: Path,
    issued: Issued | None,
    authority: Authority,
    line: str,
) -> None:
    """An alert is an SslAuthenticationException at once; without one it would try again."""
    options = properties(tmp_path, "PKCS12", issued, authority)
    code, said = run(kafka, secured, "kafka-topics", ["--list", f"--command-config={options}"])
    assert code == 1
    assert "SslAuthenticationException" in said
    assert any(line in each for each in secured.lines.of()), secured.lines.of()
    secured.lines.clear()
