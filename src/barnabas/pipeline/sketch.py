"""The definitions of a project, read without Spark: topics in and out, and their options.

Python definitions only describe queries, so they can be run against a session without a server. A
definition that needs a result of Spark (`df.columns`, `collect`) cannot: then it is missing in the
sketch, and only Spark's own dry run can check it. The same holds for SQL, which is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.definitions import define
from barnabas.pipeline.engine import connect_mode
from barnabas.pipeline.errors import NeedsSparkError
from barnabas.pipeline.spec import Spec

if TYPE_CHECKING:
    from pyspark.pipelines.flow import AutoCdcFlow, Flow
    from pyspark.pipelines.output import Output

FORMAT = "barnabas"
_TABLE_IN_SQL = re.compile(r"\b(STREAMING\s+TABLE|MATERIALIZED\s+VIEW)\b", re.I)


@dataclass(frozen=True, slots=True)
class SourceSketch:
    """A read of topics."""

    where: str
    options: Mapping[str, str]
    streaming: bool


@dataclass(frozen=True, slots=True)
class FlowSketch:
    """A flow, its topics, and the views that it reads."""

    where: str
    name: str
    target: str
    sources: tuple[SourceSketch, ...]
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SinkSketch:
    """A sink of any format."""

    where: str
    name: str
    format: str
    options: Mapping[str, str]


@dataclass(slots=True)
class Sketch:
    """The definitions that could be read."""

    flows: list[FlowSketch] = field(default_factory=list)
    sinks: list[SinkSketch] = field(default_factory=list)
    outputs: set[str] = field(default_factory=set)
    views: set[str] = field(default_factory=set)
    """The outputs that only flows of the same update can read."""
    has_tables: bool = False
    """Whether something is kept in a catalog, or may be, if a definition was not read."""

    @property
    def sources(self) -> list[SourceSketch]:
        """All reads of topics."""
        return [source for flow in self.flows for source in flow.sources]

    @property
    def topic_sinks(self) -> list[SinkSketch]:
        """The sinks that are topics."""
        return [sink for sink in self.sinks if sink.format == FORMAT]

    def sources_of(self, flow: FlowSketch) -> list[SourceSketch]:
        """Return what a flow reads, directly and through views.

        What it reads from tables is not included: its checkpoint knows only tables.
        """
        by_name = {each.name: each for each in self.flows if each.target in self.views}
        found: list[SourceSketch] = []
        seen: set[str] = set()
        waiting = [flow]
        while waiting:
            each = waiting.pop()
            if each.name in seen:
                continue
            seen.add(each.name)
            found += each.sources
            waiting += [by_name[name] for name in each.inputs if name in by_name]
        return found


def sketch(spec: Spec) -> Sketch:
    """Read the definitions of a project; raise PipelineError if one of them fails."""
    found = Sketch()
    with connect_mode():
        session = _session()
        try:
            define(spec, _registry(found, session, spec.directory), session, "sketch")
        except NeedsSparkError:
            found.has_tables = True  # earlier definitions are known all the same
        finally:
            session.client._closed = True  # there is no server to disconnect from
    return found


def _session() -> Any:
    """Return a Connect session whose every call raises NeedsSparkError."""
    from pyspark.sql.connect.client.core import ChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    class Nowhere:
        def _refuse(self, *arguments: Any, **options: Any) -> Any:
            raise NeedsSparkError("only a running Spark can determine this")

        def unary_unary(self, *arguments: Any, **options: Any) -> Any:
            return self._refuse

        unary_stream = stream_unary = stream_stream = unary_unary

        def close(self) -> None:
            pass

    class Builder(ChannelBuilder):
        @property
        def host(self) -> str:
            return "nowhere"

        def toChannel(self) -> Any:
            return Nowhere()

    builder: Any = Builder()
    return SparkSession(connection=builder)


def _registry(found: Sketch, session: Any, directory: Path) -> Any:
    from pyspark.pipelines.graph_element_registry import GraphElementRegistry
    from pyspark.pipelines.output import Sink, Table, TemporaryView

    class Registry(GraphElementRegistry):
        def register_output(self, output: Output) -> None:
            found.outputs.add(output.name)
            if isinstance(output, TemporaryView):
                found.views.add(output.name)
            found.has_tables |= isinstance(output, Table)
            if isinstance(output, Sink):
                found.sinks.append(
                    SinkSketch(
                        _where(output, directory), output.name, output.format, output.options
                    )
                )

        def register_flow(self, flow: Flow) -> None:
            try:
                frame: Any = flow.func()
                plan = frame._plan.plan(session.client)
            except NeedsSparkError:
                return
            where = _where(flow, directory)
            reads = list(_reads(plan))
            sources = tuple(
                SourceSketch(where, dict(read.data_source.options), read.is_streaming)
                for read in reads
                if read.data_source.format == FORMAT
            )
            inputs = tuple(
                read.named_table.unparsed_identifier
                for read in reads
                if read.HasField("named_table")
            )
            found.flows.append(FlowSketch(where, flow.name, flow.target, sources, inputs))

        def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
            pass

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            found.has_tables |= _TABLE_IN_SQL.search(sql_text) is not None

    return Registry()


def _where(element: Any, directory: Path) -> str:
    location = element.source_code_location
    file = Path(location.filename)
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    return f"{shown}:{location.line_number}"


def _reads(message: Any) -> Iterator[Any]:
    """Yield all reads in a plan."""
    for described, value in message.ListFields():
        if described.message_type is None or described.message_type.GetOptions().map_entry:
            continue
        for each in [value] if hasattr(value, "ListFields") else value:
            if each.DESCRIPTOR.full_name == "spark.connect.Read":
                yield each
            yield from _reads(each)
