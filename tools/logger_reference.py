"""Write docs/reference/loggers.md from the broker's table of loggers.

python -m tools.logger_reference            write the page
python -m tools.logger_reference --check    fail when the page is stale
"""

from __future__ import annotations

from tools.generated import ROOT, main

from barnabas.logging.loggers import LOGGERS, BrokerLogger

PAGE = ROOT / "docs" / "reference" / "loggers.md"

HEAD = """\
<!-- Written by tools/logger_reference.py from the broker's table of loggers: do not edit. -->

# Loggers

A broker logs to standard error, from INFO on (`barnabas start --log-level`). Each logger has a
level of its own, which can be changed while the broker runs, by its name or by Kafka's names for
it:

```sh
barnabas configs describe --broker-loggers 0
barnabas configs alter --broker-loggers 0 --set barnabas.request=DEBUG
barnabas configs alter --broker-loggers 0 --delete barnabas.request
```

`kafka-configs --entity-type broker-loggers` and other admin clients do the same (BROKER_LOGGER
resources). Levels are Kafka's: FATAL, ERROR, WARN, INFO, DEBUG, TRACE. A logger whose level is
deleted has that of `barnabas`, and that of `root` if `barnabas` has none. Levels belong to the
process and are not stored: after a restart they are those of `--log-level`.

| logger | lines about | file | Kafka's names |
| --- | --- | --- | --- |
"""

TAIL = """
Loggers of programs that use Barnabas as a library begin with `barnabas.client`,
`barnabas.producer` and `barnabas.consumer`.

## Files

With `barnabas.log.dir` set, the lines are also written to the files of the table, as Kafka's own
`log4j` settings name them and in their form. Changes of the ISR are in `state-change.log` and in
`server.log`. A file of `barnabas.log.file.max.bytes` (100 MiB) is renamed to `server.log.1` and so
on; `barnabas.log.file.backups` (10) of them are kept.

## Formats

`barnabas start --log-format` (`barnabas.log.format`) chooses how lines look. Every event is one
line; only the traceback of an unexpected error follows a plain line, indented.

| format | for |
| --- | --- |
| `plain` | people: time, level, logger, message; files are in the form of Kafka's own |
| `json` | machines: one flat object per line |
| `ecs` | machines: one object in the Elastic Common Schema |

The keys of `json` are `ts` (RFC 3339, UTC, with milliseconds), `level`, `logger`, `event` (what
happened, where the line has a name for it), `message`, `broker`, then those of the event: `topic`,
`partition`, `group`, `principal`, `client_id`, `host`, `api`, `error`, `reason` and others. A
traceback is one text, `exception`. In `ecs` these are `@timestamp`, `log.level`, `log.logger`,
`event.action`, `message` and `error.stack_trace`; the rest is below `labels`.

What clients chose (names of groups, clients and users) is cut at 200 characters, and line breaks,
control characters and direction marks are escaped, so no client can forge a line.

## What is never delayed by logging

A thread of its own writes the lines. If their reader is too slow, or a pipe is not read at all, up
to 4 MiB wait; lines at DEBUG are dropped first, then those at INFO, and a line says how many
(`log.dropped`). Everything that waits is written before the process ends, unless nobody reads it
for 2 seconds.
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(row(each) for each in LOGGERS) + TAIL


def row(logger: BrokerLogger) -> str:
    """Return the row of one logger."""
    names = ", ".join(f"`{name}`" for name in logger.kafka_names) or "–"
    return f"| `{logger.name}` | {logger.meaning} | {logger.file} | {names} |\n"


if __name__ == "__main__":
    raise SystemExit(main(PAGE, page(), "tools.logger_reference"))
