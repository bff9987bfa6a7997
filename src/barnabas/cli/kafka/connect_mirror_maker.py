"""`connect-mirror-maker`: the second MirrorMaker, over `barnabas mirror`, in one process."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas.cli.kafka.mirror_flows import Flow

TOOL = "connect-mirror-maker"
TIMEOUT_MS = 300_000.0
"""For how long a cluster may be unreachable, once it has responded."""

FLAGS = Flags(
    "Copy topics between the clusters of a properties file, until it is stopped.",
    (
        Flag("--clusters", "ALIAS", "only flows to these clusters", several=True),
        Flag("--daemon", inert="run it in the background by your service manager"),
        Flag("--name", "NAME", inert="processes have no names here"),
        Flag("--loggc", inert="there is no Java"),
    ),
    words="FILE",
    ignores_words=False,
)


def run(given: Given) -> int:
    """Copy until it is stopped, or a flow fails for good."""
    words = list(given.words)
    if not words and len(given["clusters"]) > 1:  # the file follows the aliases
        words = [given["clusters"].pop()]
    if len(words) != 1:
        raise UsageError(f"USAGE: {TOOL} mm2.properties [--clusters ALIAS ...]")
    flows = _flows(words[0], given)
    from barnabas.cli.interruption import INTERRUPTION
    from barnabas.cli.session import on_loop

    INTERRUPTION.serve()
    on_loop(_copy(flows), busy=True)
    return 0


def _flows(path: str, given: Given) -> list[Flow]:
    from barnabas.cli.kafka.client_properties import read_file
    from barnabas.cli.kafka.mirror_flows import FlowsFile
    from barnabas.model.errors import ConfigError, InvalidValueError

    properties = read_file(TOOL, path)
    try:
        file = FlowsFile(properties)
        aliases = [alias for word in given["clusters"] for alias in word.split(",") if alias]
        flows = file.flows(aliases or None)
    except InvalidValueError as failure:
        raise ConfigError(f"{path}: {failure}") from failure
    ignored = file.without_effect()
    if ignored:
        print(f"{TOOL}: no effect: {', '.join(ignored)}", file=sys.stderr)
    return flows


async def _copy(flows: list[Flow]) -> None:
    """Copy until it is cancelled, or until one flow fails; then the others end, too."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_copy_topics(flow)) for flow in flows]
    tasks += [
        loop.create_task(_sync_groups(flow, flow.sync_groups_s))
        for flow in flows
        if flow.sync_groups_s is not None
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say(flow: Flow, text: str) -> None:
    print(f"{TOOL} {flow}: {text}", file=sys.stderr, flush=True)


async def _copy_topics(flow: Flow) -> None:
    from barnabas.client.retry import Backoff
    from barnabas.mirror.engine import LOCAL_ENGINE
    from barnabas.mirror.mirror import Mirror
    from barnabas.model.errors import BarnabasError

    topics = flow.mirror.topics
    _say(flow, f"copying topics to {topics.target_topic('*')} on {flow.target}")
    mirror = Mirror(
        flow.mirror,
        LOCAL_ENGINE,
        backoff=Backoff(random.random, initial_ms=200, max_ms=10_000),
        timeout_ms=TIMEOUT_MS,
        notify=lambda text: _say(flow, text),
        now_ms=asyncio.get_running_loop().time() * 1000,
    )
    try:
        await mirror.run()
    except BarnabasError as failure:
        failure.add_note(f"--source is {flow.source} in the file, --target is {flow.target}")
        raise


async def _sync_groups(flow: Flow, interval_s: float) -> None:
    """Translate the offsets of groups from time to time; one that fails is tried again."""
    from barnabas.mirror.group_offsets import translate_groups
    from barnabas.model.errors import BarnabasError

    while True:
        await asyncio.sleep(interval_s)
        try:
            await translate_groups(
                flow.mirror.source,
                flow.mirror.target,
                flow.mirror.topics,
                flow.groups,
                exclude=flow.groups_excluded,
            )
        except BarnabasError as failure:
            _say(flow, f"offsets of groups are not translated: {failure}; next in {interval_s} s")
