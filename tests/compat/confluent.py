"""confluent-kafka's interface, from its own package or from ours."""

from __future__ import annotations

import importlib
from typing import Any


class Confluent:
    """The modules of confluent-kafka's interface, from one package or the other."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.kafka: Any = importlib.import_module(root)
        self.admin: Any = importlib.import_module(f"{root}.admin")
        self.aio: Any = importlib.import_module(f"{root}.aio")
        self.error: Any = importlib.import_module(f"{root}.error")
        self.serialization: Any = importlib.import_module(f"{root}.serialization")

    @property
    def ours(self) -> bool:
        """Whether the clients are ours."""
        return self.root.startswith("barnabas.")

    def topic(self, bootstrap: str, name: str, partitions: int = 1, **options: str) -> str:
        """Create a topic, and return its name."""
        admin = self.admin.AdminClient({"bootstrap.servers": bootstrap})
        new = self.admin.NewTopic(name, partitions, 1, config=options)
        admin.create_topics([new])[name].result(30)
        return name

    def fill(self, bootstrap: str, name: str, count: int, partition: int = 0) -> None:
        """Write the values b"0", b"1", …, each with a timestamp a second after the one before."""
        producer = self.kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        start_ms = 1_700_000_000_000
        for number in range(count):
            value, key = b"%d" % number, b"key-%d" % number
            producer.produce(name, value, key, partition, timestamp=start_ms + 1000 * number)
        assert producer.flush(30) == 0

    def consumer(self, bootstrap: str, group: str, **options: Any) -> Any:
        """Return a consumer that starts at the beginning; options have _ for the dots."""
        return self.kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                **{name.replace("_", "."): value for name, value in options.items()},
            }
        )
