"""Write docs/reference/options.md from the declared options.

    python tools/option_reference.py            write the page
    python tools/option_reference.py --check    fail when the page is stale
    python tools/option_reference.py --check-statuses
                                                fail when an option that is declared to act is read
                                                nowhere, or one without effect is read

The last one looks for attributes by name in the sources outside config/.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.config.aliases import ALIASES, aliases
from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Option, Section
from barnabas.config.topic import TopicOptions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "options.md"
SOURCES = ROOT / "src" / "barnabas"

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
    read = _read_attributes()
    for section in (BrokerOptions, TopicOptions):
        for option in section.options.values():
            name = option.name
            if option.status == "acts":
                if option.attribute not in read and not _read_by_way_of_others(option, read):
                    lines.append(f"{name} is declared to act, but nothing reads it")
            elif option.status == "reserved" and option.attribute in read:
                lines.append(f"{name} is declared to have no effect, but something reads it")
    return lines


def _read_attributes() -> set[str]:
    """Return the attributes that the sources outside config/ read off something named options."""
    read: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        if "config" not in path.relative_to(SOURCES).parts:
            read.update(re.findall(r"(?:options|\))\.([a-z]\w*)", path.read_text()))
    return read


def _read_by_way_of_others(option: Option, read: set[str]) -> bool:
    """Say whether config/ itself reads the option, to give something that is read."""
    name = option.name
    if "listener" in name or name == "security.inter.broker.protocol":
        return "endpoints" in read
    if name in ("log.dirs", "log.dir"):
        return "log_directories" in read
    if name in ("node.id", "broker.id.generation.enable", "reserved.broker.max.id"):
        return "broker_id" in read
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
    text = page()
    shown = PAGE.relative_to(ROOT)
    if not arguments.check:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)
        print(f"wrote {shown}")
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        print(f"{shown} is stale: run python tools/option_reference.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
