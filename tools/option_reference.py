"""Write docs/reference/options.md and client-options.md from the declared options.

    python tools/option_reference.py            write the pages
    python tools/option_reference.py --check    fail when a page is stale
    python tools/option_reference.py --check-statuses
                                                fail when an option that is declared to act is read
                                                nowhere, or one without effect is read

The last one looks for attributes by name in the sources outside config/: those of brokers and
those of clients, which have options of the same names, apart.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.config.aliases import ALIASES, aliases
from barnabas.config.broker import BrokerOptions
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.java import JavaOptions
from barnabas.config.clients.producer import ProducerOptions
from barnabas.config.clients.security import SecurityOptions
from barnabas.config.login import LoginOptions
from barnabas.config.option import Option, Section
from barnabas.config.topic import TopicOptions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "options.md"
CLIENT_PAGE = ROOT / "docs" / "reference" / "client-options.md"
SOURCES = ROOT / "src" / "barnabas"
CLIENT_FOLDERS = {"admin", "aio", "blocking", "client", "consumer", "producer"}
LOGINS = ("client", "sasl")
"""Brokers log in to each other as clients do."""

CLIENT_SECTIONS: dict[str, type[Section]] = {
    "All clients": CommonOptions,
    "All clients: TLS and SASL": SecurityOptions,
    "All clients: logins by bearer tokens and Kerberos": LoginOptions,
    "Producer": ProducerOptions,
    "Consumer": ConsumerOptions,
    "Admin client": AdminOptions,
    "All clients: accepted for the sake of Java": JavaOptions,
}

CLIENT_HEAD = """\
<!-- Written by tools/option_reference.py from the declared options: do not edit. -->

# Options of clients

Options are given to a client by Kafka's names or by the same in snake case, as texts or as Python
values; None means: not given.

    KafkaProducer(bootstrap_servers="localhost:9092", linger_ms=5)
    KafkaProducer(**{"bootstrap.servers": "localhost:9092", "linger.ms": "5"})

A name that no option has is an error, which tells the nearest one that exists. **Status** says what
an option does: *acts*; *no effect*, with the reason: it is accepted, so that programs need not be
changed; *refused*: another value than the default is an error. **Also** has further names of an
option: those of kafka-python, aiokafka and librdkafka that differ.
"""

HEAD = """\
<!-- Written by tools/option_reference.py from the declared options: do not edit. -->

# Options

Names, types and defaults are Kafka's. Put them in a properties file (`barnabas start --config
FILE`) or on the command line (`--set name=value`). Times are in milliseconds and sizes in bytes
unless the name says otherwise.

**At run time** says who can change an option while brokers run: `no` needs a restart, `broker` can
be set for one broker, `cluster` also for all at once. Options of topics can always be changed.

**Status** says what an option does here: *acts*; *no effect yet* or *no effect*, with the reason:
it is accepted, and the broker warns about it by name at start when it is set to something else than
its default; *refused*: the broker does not start when it is set to something else than its default.

Names that no option has are warned about, too, with the nearest name that exists. Options of TLS
and SASL can be set for one listener as `listener.name.<listener>.<option>`, and those of SASL for
one mechanism as `listener.name.<listener>.<mechanism>.<option>`. Where several options say the
same, the first one that is set wins:

{aliases}
"""


def page() -> str:
    """Return the whole page."""
    rows = (", then ".join(f"`{name}`" for name in row) for row in ALIASES.values())
    parts = [HEAD.format(aliases="\n".join(f"- {row}" for row in rows))]
    for section in BrokerOptions.__bases__:
        assert issubclass(section, Section)
        title = (section.__doc__ or "").rstrip(".")
        parts.append(f"## Broker: {title[0].lower()}{title[1:]}\n\n{_broker_table(section)}")
    parts.append(f"## Topic\n\n{_topic_table()}")
    return "\n".join(parts)


def client_page() -> str:
    """Return the whole page of the clients' options."""
    head = ["name", "type", "default", "values", "also", "status", "meaning"]
    parts = [CLIENT_HEAD]
    for title, section in CLIENT_SECTIONS.items():
        also: dict[str, list[str]] = {}
        for name, meant in getattr(section, "other_names", {}).items():
            also.setdefault(meant, []).append(f"`{name}`")
        rows = (
            [*_common(option), ", ".join(also.get(option.name, [])), _status(option), option.doc]
            for option in _own(section)
        )
        parts.append(f"## {title}\n\n{_table(head, rows)}")
    return "\n".join(parts)


def _own(section: type[Section]) -> list[Option]:
    """Return the options that a section adds to those that it inherits, or declares anew."""
    parents = [parent for parent in section.__bases__ if issubclass(parent, Section)]
    inherited = [option for parent in parents for option in parent.options.values()]
    return [option for option in section.options.values() if option not in inherited]


def _broker_table(section: type[Section]) -> str:
    head = ["name", "type", "default", "values", "at run time", "status", "meaning"]
    return _table(
        head,
        (
            [*_common(option), option.dynamic, _status(option), option.doc]
            for option in section.options.values()
        ),
    )


def _topic_table() -> str:
    head = ["name", "type", "default", "values", "falls back to", "status", "meaning"]
    return _table(
        head,
        (
            [
                *_common(option),
                f"`{option.synonym}`" if option.synonym else "",
                _status(option),
                option.doc,
            ]
            for option in TopicOptions.options.values()
        ),
    )


def _table(head: list[str], rows: Iterator[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _common(option: Option) -> list[str]:
    default = option.text(option.default)
    shown = "" if default is None else f"`{default}`" if default else "empty"
    return [f"`{option.name}`", option.kind.name.lower(), shown, _values(option)]


def _values(option: Option) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.at_least is None and option.at_most is None:
        return ""
    if option.at_most is None:
        text = f"{option.at_least} or more"
    else:
        text = f"{option.at_least} to {option.at_most}"
    return ", ".join([*map(str, option.besides), text])


def _status(option: Option) -> str:
    if option.refused:
        return f"refused: {option.refused}"
    if option.reserved:
        later = " yet" if option.reserved.startswith("arrives") else ""
        return f"no effect{later}: {option.reserved}"
    return "acts"


def wrong_statuses() -> list[str]:
    """Return a line for each option that claims to act but is not read, or the other way round."""
    lines = []
    by_brokers, by_clients = _read_attributes()
    sections = [(BrokerOptions, by_brokers), (TopicOptions, by_brokers)]
    sections += [(section, by_clients) for section in CLIENT_SECTIONS.values()]
    for section, read in sections:
        for option in section.options.values() if read is by_brokers else _own(section):
            name = option.name
            if option.status == "acts":
                if option.attribute not in read and not _read_by_way_of_others(option, read):
                    lines.append(f"{name} is declared to act, but nothing reads it")
            elif (
                option.status == "reserved"
                and option.attribute in read
                and not (read is by_clients and _acts_elsewhere(option))
            ):
                lines.append(f"{name} is declared to have no effect, but something reads it")
    return lines


def _read_attributes() -> tuple[set[str], set[str]]:
    """Return the attributes that brokers and clients read off something named options."""
    by_brokers: set[str] = set()
    by_clients: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).parts
        if "config" in parts:
            continue
        read = set(re.findall(r"(?:options|\))\.([a-z]\w*)", path.read_text()))
        if parts[0] in CLIENT_FOLDERS:
            by_clients |= read
        if parts[0] not in CLIENT_FOLDERS or parts[:2] == LOGINS:
            by_brokers |= read
    return by_brokers, by_clients


def _acts_elsewhere(option: Option) -> bool:
    """Say whether another kind of client has the same option, which acts there."""
    namesakes = (section.options.get(option.name) for section in CLIENT_SECTIONS.values())
    return any(other is not None and other.status == "acts" for other in namesakes)


def _read_by_way_of_others(option: Option, read: set[str]) -> bool:
    """Say whether config/ itself reads the option, to give something that is read."""
    name = option.name
    if "listener" in name or name == "security.inter.broker.protocol":
        return "endpoints" in read
    if name in ("log.dirs", "log.dir"):
        return "log_directories" in read
    if name.endswith(("serializer.encoding", "serializer.inner")):  # told to what is made of a name
        return f"key_{'de' if 'deserializer' in name else ''}serializer" in read
    if name in ("node.id", "broker.id.generation.enable", "reserved.broker.max.id"):
        return "broker_id" in read
    if name in ("security.protocol", "sasl.jaas.config"):
        return "uses_sasl" in read or "given" in read  # a broker's has a prefix
    if option.attribute == "segment_ms":
        return "segment_ms_max" in read
    return any(
        topic.attribute in read or _read_by_way_of_others(topic, read)
        for topic in TopicOptions.options.values()
        if topic.synonym is not None and name in aliases(topic.synonym)
    )


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description="Write the reference page of all options.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="fail when the page is stale")
    mode.add_argument(
        "--check-statuses", action="store_true", help="fail when a status contradicts the sources"
    )
    arguments = parser.parse_args()
    if arguments.check_statuses:
        wrong = wrong_statuses()
        for line in wrong:
            print(line, file=sys.stderr)
        return 1 if wrong else 0
    stale = False
    for path, text in ((PAGE, page()), (CLIENT_PAGE, client_page())):
        shown = path.relative_to(ROOT)
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {shown}")
        elif not path.exists() or path.read_text() != text:
            print(f"{shown} is stale: run python tools/option_reference.py", file=sys.stderr)
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
