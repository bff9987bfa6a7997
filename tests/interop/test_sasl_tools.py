"""Java's tools with passwords and tokens, in clear and inside TLS: they work, or say why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.compat.secured import MECHANISMS, PASSWORD, PASSWORDS, WRONG, Secured, secured_broker
from tools.apache_kafka import Distribution

pytestmark = pytest.mark.interop

MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
HANDLERS = {
    "3.9": "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    "4": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
}
"""What fetches tokens, by the release of Kafka's tools."""

VALUES = [str(number) for number in range(50)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


class Tools:
    """The tools of one release, with the options of one login."""

    def __init__(self, kafka: Distribution, secured: Secured, listener: str, folder: Path) -> None:
        self._kafka = kafka
        self._secured = secured
        self._listener = listener
        self._folder = folder
        self._options = folder / "client.properties"
        self._java: list[str] = []

    def log_in(self, mechanism: str, password: str = PASSWORD, token: str = "") -> None:
        """Write the options of a client."""
        encrypted = self._listener == "ENCRYPTED"
        login = f"{MODULES[mechanism]} required"
        lines = [
            f"security.protocol={'SASL_SSL' if encrypted else 'SASL_PLAINTEXT'}",
            f"sasl.mechanism={mechanism}",
        ]
        if encrypted:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self._secured.cafile}"]
        if mechanism == "OAUTHBEARER":
            file = self._folder / "token"
            file.write_text(token or self._secured.token())
            release = "3.9" if self._kafka.release.startswith("3.9") else "4"
            lines += [
                f"sasl.oauthbearer.token.endpoint.url={file.as_uri()}",
                f"sasl.login.callback.handler.class={HANDLERS[release]}",
            ]
            self._java = [
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}",
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={file}",
            ]
        else:
            login += f' username="alice" password="{password}"'
        text = "\n".join([*lines, f"sasl.jaas.config={login};"])
        # A properties file is Latin-1, with all else as in Java's sources.
        self._options.write_bytes(text.encode("latin-1", "backslashreplace"))

    def run(
        self, tool: str, flag: str, *arguments: str, input: str = "", code: int = 0
    ) -> Sequence[str]:
        """Run a tool, and return the lines that it printed."""
        address = self._secured.addresses[self._listener]
        login = f"{flag}={self._options}"
        done = self._kafka.run(
            tool,
            *("--bootstrap-server", address, login, *arguments),
            input=input,
            java_options=self._java,
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        return (done.stdout if code == 0 else said).splitlines()


@pytest.fixture
def tools(
    kafka: Distribution, secured: Secured, tmp_path: Path, request: pytest.FixtureRequest
) -> Tools:
    return Tools(kafka, secured, getattr(request, "param", "SASL"), tmp_path)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("tools", ["SASL", "ENCRYPTED"], indirect=True)
def test_java_administers_produces_and_consumes(tools: Tools, mechanism: str, name: str) -> None:
    tools.log_in(mechanism)
    topic = name[-100:]
    tools.run("kafka-topics", "--command-config", "--create", "--topic", topic, "--partitions=2")
    assert topic in tools.run("kafka-topics", "--command-config", "--list")
    lines = "".join(f"{value}\n" for value in VALUES)
    tools.run("kafka-console-producer", "--producer.config", "--topic", topic, input=lines)
    asked = ["--topic", topic, "--group", topic, "--from-beginning"]
    limits = ["--max-messages=50", "--timeout-ms=30000"]
    said = tools.run("kafka-console-consumer", "--consumer.config", *asked, *limits)
    found = [line for line in said if line.isdigit()]  # 4.x also says that the flag has a new name
    assert sorted(found, key=int) == VALUES
    described = tools.run(
        "kafka-consumer-groups", "--command-config", "--describe", "--group", topic
    )
    lags = [line.split()[5] for line in described if line.startswith(topic)]
    assert lags == ["0", "0"], described


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_java_says_that_a_password_is_wrong(tools: Tools, secured: Secured, mechanism: str) -> None:
    tools.log_in(mechanism, password=WRONG)
    said = tools.run("kafka-topics", "--command-config", "--list", code=1)
    assert any("SaslAuthenticationException" in line for line in said), said
    assert WRONG not in secured.log.read_text()


def test_java_says_that_a_token_is_rejected(tools: Tools, secured: Secured) -> None:
    """Signed by somebody else's issuer, since Java sends no token that it knows to be late."""
    token = secured.issuer.sign({"sub": "alice", "iat": 0, "exp": 4e9, "aud": "others"})
    tools.log_in("OAUTHBEARER", token=token)
    said = tools.run("kafka-topics", "--command-config", "--list", code=1)
    assert any("SaslAuthenticationException" in line for line in said), said
