"""Files for a client: options as properties, and a program to begin with for each library.

The programs read the password from the file beside them, so that they can be shown and copied.
Each sends a record to one topic and reads it back in a group.
"""

from __future__ import annotations

import json

from barnabas.config.properties import write_properties
from barnabas.security.setup.client_options import MECHANISM, ClientOptions

PASSWORD, CA, KEYSTORE = "password", "ca.crt", "client.pem"
PROPERTIES, LIBRDKAFKA = "client.properties", "librdkafka.conf"

_PASSWORD = f'(HERE / "{PASSWORD}").read_text().strip()'
_HEADER = '''\
"""{title}

Run it with: python {name}
"""

from __future__ import annotations

{imports}

HERE = Path(__file__).resolve().parent
{login}OPTIONS = {options}
TOPIC, GROUP = {topic}, {group}
'''

_LOGIN = """\
LOGIN = (
    "{before}"
    f'username="{user}" password="{{{password}}}";'
)
"""

_CONFLUENT = """\

if __name__ == "__main__":
    producer = Producer(OPTIONS)
    producer.produce(TOPIC, b"from confluent-kafka")
    producer.flush()
    consumer = Consumer({**OPTIONS, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    while (message := consumer.poll(1.0)) is None or message.error():
        pass
    print(message.value().decode())
    consumer.close()
"""

_KAFKA_PYTHON = """\

if __name__ == "__main__":
    producer = KafkaProducer(**OPTIONS)
    producer.send(TOPIC, b"from {library}").get(timeout=60)
    producer.close()
    consumer = KafkaConsumer(TOPIC, group_id=GROUP, auto_offset_reset="earliest", **OPTIONS)
    print(next(consumer).value.decode())
    consumer.close()
"""

_AIOKAFKA = """\


async def main() -> None:
    async with AIOKafkaProducer(**OPTIONS) as producer:
        await producer.send_and_wait(TOPIC, b"from aiokafka")
    async with AIOKafkaConsumer(
        TOPIC, group_id=GROUP, auto_offset_reset="earliest", **OPTIONS
    ) as consumer:
        print((await consumer.getone()).value.decode())


if __name__ == "__main__":
    asyncio.run(main())
"""

_SPARK = """\

if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    hello = spark.sql("SELECT 'from Spark' AS value")
    to_topic = hello.write.format("barnabas").mode("append").options(**OPTIONS)
    to_topic.option("topic", TOPIC).save()
    records = spark.read.format("barnabas").options(**OPTIONS).option("subscribe", TOPIC).load()
    records.selectExpr("CAST(value AS STRING)").show(truncate=False)
    spark.stop()
"""

_KAFKAJS = """\
// kafkajs as {user}.
//
//     node {name}

const {{ readFileSync }} = require("node:fs");
const {{ join }} = require("node:path");
const {{ Kafka, logLevel }} = require("kafkajs");

const read = (name) => readFileSync(join(__dirname, name), "utf8").trim();
const OPTIONS = {options};
const TOPIC = {topic}, GROUP = {group};

async function main() {{
  const kafka = new Kafka({{ ...OPTIONS, logLevel: logLevel.ERROR }});
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({{ topic: TOPIC, messages: [{{ value: "from kafkajs" }}] }});
  await producer.disconnect();
  const consumer = kafka.consumer({{ groupId: GROUP }});
  await consumer.connect();
  await consumer.subscribe({{ topic: TOPIC, fromBeginning: true }});
  const value = await new Promise((resolve) => {{
    consumer.run({{ eachMessage: async ({{ message }}) => resolve(message.value.toString()) }});
  }});
  console.log(value);
  await consumer.disconnect();
}}

if (require.main === module) main();
module.exports = {{ OPTIONS }};
"""


class _Code(str):
    """An expression of a program, shown as it is."""

    def __repr__(self) -> str:
        return str(self)


def client_files(options: ClientOptions, prefix: str) -> dict[str, str]:
    """Return the contents of a client's files by their names; those with its password are secret.

    `prefix` begins the names of topics and groups that the client may use.
    """
    return {
        PROPERTIES: properties_file(options),
        LIBRDKAFKA: "".join(f"{name}={value}\n" for name, value in options.librdkafka().items()),
        **_programs(options, prefix),
    }


def properties_file(options: ClientOptions) -> str:
    """Return the options for Java's clients and for `--command-config`."""
    return write_properties(options.kafka(), f"{options.user}: clients of Kafka, --command-config")


def _programs(options: ClientOptions, prefix: str) -> dict[str, str]:
    librdkafka = _with_files(options.librdkafka(), options)
    arguments = _with_files(options.kafka_python(), options)
    aiokafka = {name: value for name, value in arguments.items() if not name.startswith("ssl_")}
    if options.uses_tls:
        names = {"ssl_cafile": "cafile", "ssl_certfile": "certfile", "ssl_keyfile": "keyfile"}
        context = ", ".join(
            f"{names[name]}={value}" for name, value in arguments.items() if name in names
        )
        aiokafka["ssl_context"] = _Code(f"create_ssl_context({context})")

    def program(
        library: str, imports: str, values: dict[str, str], body: str, login: str = ""
    ) -> str:
        return (
            _HEADER.format(
                title=f"{library} as {options.user}.",
                name=_program_name(library.partition(",")[0].lower()),
                imports=imports,
                login=login,
                options=_shown(values),
                topic=_quoted(f"{prefix}hello"),
                group=_quoted(f"{prefix}group"),
            )
            + body
        )

    path = "from pathlib import Path\n"
    return {
        _program_name("confluent-kafka"): program(
            "confluent-kafka",
            f"{path}\nfrom confluent_kafka import Consumer, Producer",
            librdkafka,
            _CONFLUENT,
        ),
        _program_name("kafka-python"): program(
            "kafka-python",
            f"{path}\nfrom kafka import KafkaConsumer, KafkaProducer",
            arguments,
            _KAFKA_PYTHON.format(library="kafka-python"),
        ),
        _program_name("aiokafka"): program(
            "aiokafka",
            f"import asyncio\n{path}\nfrom aiokafka import AIOKafkaConsumer, AIOKafkaProducer"
            + ("\nfrom aiokafka.helpers import create_ssl_context" if options.uses_tls else ""),
            aiokafka,
            _AIOKAFKA,
        ),
        _program_name("barnabas"): program(
            "barnabas",
            f"{path}\nfrom barnabas import KafkaConsumer, KafkaProducer",
            arguments,
            _KAFKA_PYTHON.format(library="barnabas"),
        ),
        _program_name("spark"): program(
            'Spark, whose own format("kafka") takes the same options,',
            f"{path}\nfrom pyspark.sql import SparkSession",
            _spark_options(options),
            _SPARK,
            _spark_login(options) if options.uses_sasl else "",
        ),
        "kafkajs_example.js": _KAFKAJS.format(
            user=options.user,
            name="kafkajs_example.js",
            options=_kafkajs_options(options),
            topic=_quoted(f"{prefix}hello"),
            group=_quoted(f"{prefix}group"),
        ),
    }


def _program_name(library: str) -> str:
    return f"{library.replace('-', '_')}_example.py"


def _with_files(values: dict[str, str], options: ClientOptions) -> dict[str, str]:
    """Return options with paths beside the program, and the password read from its file."""
    files = {
        options.password: _PASSWORD,
        str(options.cafile): f'str(HERE / "{CA}")',
        str(options.keystore): f'str(HERE / "{KEYSTORE}")',
    }
    return {
        name: _Code(files[value]) if value in files else value for name, value in values.items()
    }


def _spark_options(options: ClientOptions) -> dict[str, str]:
    values = {f"kafka.{name}": value for name, value in options.kafka().items()}
    if options.uses_sasl:
        values["kafka.sasl.jaas.config"] = _Code("LOGIN")
    return _with_files(values, options)


def _spark_login(options: ClientOptions) -> str:
    before, _, _ = options.kafka()["sasl.jaas.config"].partition("username=")
    return _LOGIN.format(before=before, user=options.user, password=_PASSWORD)


def _kafkajs_options(options: ClientOptions) -> str:
    brokers = ", ".join(_quoted(each) for each in options.bootstrap.split(","))
    lines = [f"clientId: {_quoted(options.user)},", f"brokers: [{brokers}],"]
    if options.uses_tls:
        files = [f"ca: read({_quoted(CA)})"]
        if options.keystore is not None:
            files += [f"{name}: read({_quoted(KEYSTORE)})" for name in ("cert", "key")]
        lines.append(f"ssl: {{ {', '.join(files)} }},")
    if options.uses_sasl:
        lines += [
            "sasl: {",
            f"  mechanism: {_quoted(MECHANISM.lower())},",
            f"  username: {_quoted(options.user)},",
            f"  password: read({_quoted(PASSWORD)}),",
            "},",
        ]
    return "\n".join(["{", *(f"  {line}" for line in lines), "}"])


def _shown(values: dict[str, str]) -> str:
    lines = [f"    {_quoted(name)}: {_quoted(value)}," for name, value in values.items()]
    return "\n".join(["{", *lines, "}"])


def _quoted(value: str) -> str:
    """Return an expression, or a string in double quotes, as most programs have them."""
    return str(value) if isinstance(value, _Code) else json.dumps(value, ensure_ascii=False)
