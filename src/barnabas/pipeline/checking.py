"""Checks of a pipeline before it moves any data: options, topics, checkpoints.

Returns all errors, one line each, instead of the first one only. Options are checked by the very
functions that the source and the sink use; a checkpoint is compared with the cluster as its query
would do when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from barnabas.admin.topic_descriptions import describe_topics
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NetworkError, NoBrokersAvailable
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.pipeline.sketch import FlowSketch, SinkSketch, Sketch, SourceSketch
from barnabas.pipeline.spec import Spec
from barnabas.spark.cluster import Cluster
from barnabas.spark.micro_batch import MicroBatchPlanner, TopicSnapshot
from barnabas.spark.options import SinkOptions, SourceOptions, parse_sink, parse_source
from barnabas.spark.source_offset import SourceOffset, parse_source_offset

Drawn = TypeVar("Drawn", SourceSketch, SinkSketch)
Options = TypeVar("Options")

PATIENCE_MS = 5000
"""How long brokers may take to respond, unless the options of a client set it."""


def check(spec: Spec, sketch: Sketch) -> list[str]:
    """Return the errors."""
    wrong: list[str] = []
    sources = _parsed(sketch.sources, _source_options, wrong)
    sinks = _parsed(sketch.topic_sinks, _sink_options, wrong)
    wrong += _undefined_targets(sketch)
    if wrong:
        return wrong
    snapshots: dict[int, TopicSnapshot] = {}
    unreachable: set[str] = set()
    seen: set[str] = set()
    for source, options in sources:
        if options.client["bootstrap.servers"] in unreachable:
            continue
        try:
            snapshots[id(source)] = _snapshot(options)
        except (NetworkError, NoBrokersAvailable) as failure:
            unreachable.add(options.client["bootstrap.servers"])
            wrong.append(_unreachable(source.where, options.client, failure))
        except BarnabasError as failure:
            message = f"{failure}{_creating(failure)}"
            if message not in seen:  # once, however many flows read the topic
                seen.add(message)
                wrong.append(f"{source.where}: {message}")
    wrong += _missing_targets(sinks, unreachable)
    known = {id(source): options for source, options in sources}
    for flow in sketch.flows:
        wrong += _checkpoint(spec, sketch, flow, known, snapshots)
    return list(dict.fromkeys(wrong))


def _source_options(source: SourceSketch) -> SourceOptions:
    return parse_source(source.options, streaming=source.streaming)


def _sink_options(sink: SinkSketch) -> SinkOptions:
    return parse_sink(sink.options, streaming=True)


def _parsed(
    drawn: Iterable[Drawn], parse: Callable[[Drawn], Options], wrong: list[str]
) -> list[tuple[Drawn, Options]]:
    found = []
    for each in drawn:
        try:
            found.append((each, parse(each)))
        except BarnabasError as failure:
            wrong.append(f"{each.where}: {failure}")
    return found


def _undefined_targets(sketch: Sketch) -> Iterator[str]:
    for flow in sketch.flows:
        if flow.target not in sketch.outputs:
            there = ", ".join(sorted(sketch.outputs))
            yield (f"{flow.where}: {flow.name}: target={flow.target}: must be one of {there}")


def _snapshot(options: SourceOptions) -> TopicSnapshot:
    cluster = Cluster(_patient(options.client))
    try:
        snapshot = cluster.snapshot(options.selection)
        options.selection.check(snapshot.topics)
        options.starting.check(options.selection.partitions(snapshot.topics))
        return snapshot
    finally:
        cluster.close()


def _patient(client: Mapping[str, str]) -> dict[str, str]:
    return {"bootstrap.timeout.ms": str(PATIENCE_MS), **client}


def _unreachable(where: str, client: Mapping[str, str], failure: BarnabasError) -> str:
    return (
        f"{where}: kafka.bootstrap.servers={client['bootstrap.servers']}: no broker responds "
        f"({failure}); start one with: barnabas start"
    )


def _creating(failure: BarnabasError) -> str:
    gone = isinstance(failure, InvalidValueError) and "does not exist" in str(failure)
    return "; create it with: barnabas topics create" if gone else ""


def _missing_targets(
    sinks: Iterable[tuple[SinkSketch, SinkOptions]], unreachable: set[str]
) -> Iterator[str]:
    for sink, options in sinks:
        if options.topic is None or options.client["bootstrap.servers"] in unreachable:
            continue
        try:
            there = _exists(options.client, options.topic)
        except BarnabasError as failure:
            unreachable.add(options.client["bootstrap.servers"])
            yield _unreachable(sink.where, options.client, failure)
            continue
        if not there:
            yield (
                f"{sink.where}: topic={options.topic}: the topic does not exist; create it with: "
                f"barnabas topics create {options.topic}"
            )


def _exists(client: Mapping[str, str], topic: str) -> bool:
    options = parse_client_options(ProducerOptions, _patient(client))

    async def ask() -> bool:
        cluster_client = ClusterClient.from_options(options)
        try:
            await cluster_client.retrying(
                cluster_client.refresh, timeout_ms=options.bootstrap_timeout_ms
            )
            [found] = await describe_topics(cluster_client, [topic])
            if found.error is None:
                return True
            if found.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            raise found.error
        finally:
            await cluster_client.close()

    thread = LoopThread("barnabas-pipeline-check")
    try:
        return thread.call(ask())
    finally:
        thread.stop()


def _checkpoint(
    spec: Spec,
    sketch: Sketch,
    flow: FlowSketch,
    known: Mapping[int, SourceOptions],
    snapshots: Mapping[int, TopicSnapshot],
) -> Iterator[str]:
    """Yield the errors of a flow's checkpoint, if it has one that names topics."""
    sources = sketch.sources_of(flow)
    if len(sources) != 1 or id(sources[0]) not in snapshots:
        return
    source, options = sources[0], known[id(sources[0])]
    try:
        positions = stored_positions(spec, sketch, flow)
        if positions is not None:
            MicroBatchPlanner(options).next_end(positions, snapshots[id(source)], None, 0)
    except BarnabasError as failure:
        yield (f"{flow.where}: {flow.name}: {failure}; --full-refresh {flow.target} starts over")


def stored_positions(spec: Spec, sketch: Sketch, flow: FlowSketch) -> SourceOffset | None:
    """Return a flow's positions in topics, from its last checkpoint; None: it has none here."""
    storage = spec.local_storage
    if storage is None or len(sketch.sources_of(flow)) != 1:
        return None
    # Spark's layout: the target's full name, the flow's name, one folder per full refresh.
    folders = list((storage / "_checkpoints").glob(f"**/{flow.target}/{flow.name}"))
    if len(folders) != 1:
        return None
    newest = _highest(folders[0])
    last = None if newest is None else _highest(newest / "offsets")
    if last is None:
        return None
    # The version, the metadata of the batch, then one line per source.
    lines = last.read_text("utf-8").splitlines()[2:]
    if len(lines) != 1:
        return None
    try:
        stored = json.loads(lines[0])
    except ValueError:
        return None
    return parse_source_offset(stored) if isinstance(stored, dict) else None


def _highest(folder: Path) -> Path | None:
    """Return the entry with the highest number for a name."""
    if not folder.is_dir():
        return None
    numbered = [each for each in folder.iterdir() if each.name.isdigit()]
    return max(numbered, key=lambda each: int(each.name), default=None)
