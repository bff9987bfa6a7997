"""Take the pictures of the console for docs/how-to/console.md.

A cluster of three with a little load is started, its pages are opened in Debian's Chromium, and the
pictures are made small by pngquant.

    python -m tools.pictures
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.system.console.chromium import PHONE, Tab, chromium
from tests.system.console.cluster import ADMIN, PASSWORDS, ConsoleCluster
from tools.apache_kafka import Distribution

from barnabas.testing.zookeeper import find_classpath

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
SIZE: ViewportSize = {"width": 1120, "height": 720}
WARM_S = 100.0
"""How long the load runs before a picture is taken: charts need a line."""
LOOK_MS = 12_000
"""Within it a page looks twice, and rates follow from two looks."""
TOPICS = {"orders": 6, "payments": 6, "shipments": 3, "clicks": 12, "audit": 1}
CUSTOMERS = [f"c-{number:03}" for number in range(40)]


def main() -> None:
    """Run the command."""
    if shutil.which("pngquant") is None:
        sys.exit("pngquant is missing: make deps installs Debian's package")
    classpath = find_classpath(Distribution.fetch("3.9").jars)
    if classpath is None:
        sys.exit("there is no ZooKeeper server: make deps fetches one")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="barnabas-pictures-") as folder:
        with ConsoleCluster(classpath) as cluster, load(cluster.client_options()) as warm:
            warm.wait(WARM_S)
            with chromium() as browser:
                tab = Tab(browser, cluster.url(), timezone_id="UTC")
                tab.page.set_viewport_size(SIZE)
                tab.log_in(ADMIN, PASSWORDS[ADMIN])
                take(tab, Path(folder))
                tab.close()
        for file in sorted(Path(folder).glob("*.png")):
            shrink(file, FOLDER / file.name)


def take(tab: Tab, folder: Path) -> None:
    """Take all pictures."""

    def shoot(name: str, *, dark: bool = False, whole: bool = False) -> None:
        if dark:
            tab.page.emulate_media(color_scheme="dark")
        tab.page.screenshot(path=folder / f"console-{name}.png", full_page=whole)
        tab.page.emulate_media(color_scheme="light")

    tab.open("/")
    tab.page.locator(".chart canvas").first.wait_for()
    shoot("overview", whole=True)
    tab.open("/topics/orders")
    tab.page.wait_for_timeout(LOOK_MS)  # two looks, from which follow the rates
    shoot("topic")
    tab.open("/topics/orders/records?q=value.status+%3D+%22paid%22+and+value.total+%3E+200")
    tab.page.locator("tbody tr").nth(10).wait_for()
    shoot("records", dark=True)
    tab.open("/groups/billing")
    tab.see("Lag in offsets")
    tab.page.wait_for_timeout(LOOK_MS)
    shoot("group")
    tab.open("/groups/reports")
    part = tab.unfold("Reset offsets")
    part.get_by_label("To (", exact=False).fill("-100")
    tab.press("Preview", part)
    shoot("reset")
    tab.open("/acls?principal=User%3Areports&operation=READ&type=TOPIC&name=payments")
    shoot("acls", dark=True)
    tab.page.set_viewport_size(PHONE)
    tab.open("/topics")
    shoot("phone")


@contextmanager
def load(options: Mapping[str, Any]) -> Iterator[threading.Event]:
    """Let some clients write and read, until the end; the event is never set before that."""
    quiet = {**options, "log_level": 0}
    admin = AdminClient(quiet)
    new = [NewTopic(name, partitions, 3) for name, partitions in TOPICS.items()]
    for future in admin.create_topics(new).values():
        future.result(60)
    rule = AclBinding(
        ResourceType.TOPIC, "pay", ResourcePatternType.PREFIXED, "User:reports", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    admin.create_acls([rule])[rule].result(60)
    ending = threading.Event()
    threads = [
        threading.Thread(target=write, args=(quiet, ending)),
        threading.Thread(target=read, args=(quiet, "billing", 25, ending)),
        threading.Thread(target=read, args=(quiet, "reports", 200, ending, 300)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield ending
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def write(options: Mapping[str, Any], ending: threading.Event) -> None:
    """Write orders and what follows from them."""
    chance = random.Random(7)
    producer = Producer({**options, "client.id": "shop", "linger.ms": 20})
    number = 10_000
    while not ending.wait(0.25):
        for _ in range(chance.randrange(8, 14)):
            number += 1
            customer = chance.choice(CUSTOMERS)
            total = round(chance.uniform(5, 250), 2)
            order = {
                "id": number,
                "customer": customer,
                "status": chance.choice(["created", "paid", "paid", "shipped"]),
                "total": total,
            }
            producer.produce("orders", json.dumps(order).encode(), customer.encode())
            paid = {"order": number, "amount": total}
            producer.produce("payments", json.dumps(paid).encode(), str(number).encode())
            for page in ("home", "cart")[: chance.randrange(3)]:
                producer.produce("clicks", json.dumps({"page": page}).encode(), customer.encode())
        producer.poll(0)
    producer.flush(10)


def read(
    options: Mapping[str, Any],
    group: str,
    rate: int,
    ending: threading.Event,
    enough: int | None = None,
) -> None:
    """Read orders, so many in a second, until there were enough."""
    consumer = Consumer(
        {
            **options,
            "client.id": f"{group}-1",
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["orders"])
    seen = 0
    while not ending.wait(0.2) and (enough is None or seen < enough):
        seen += len(consumer.consume(rate // 5, 0.2))
    consumer.close()


def shrink(source: Path, target: Path) -> None:
    """Write a picture with fewer colours."""
    command = ["pngquant", "--force", "--strip", "--quality", "60-95"]
    subprocess.run([*command, "--output", str(target), str(source)], check=True)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
