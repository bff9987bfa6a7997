"""The Cython source of structs: for each, a function that reads it and one that writes it.

`generate` puts them into one file. The functions call the inline ones of `buffers.pxd`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from barnabas.wire.decoder import smallest_struct
from barnabas.wire.primitives import FIXED
from barnabas.wire.schema import UNSET, Field, Message, Struct, Versions


class Source:
    """The lines of the file being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0

    def line(self, text: str = "") -> None:
        """Add a line; if it is too long, break it at or among its arguments."""
        text = "    " * self.indent + text if text else ""
        if len(text) > 99:
            head, _, tail = text.partition("(")
            self.lines.append(head + "(")
            text = "    " * (self.indent + (2 if text.endswith(":") else 1)) + tail
        if len(text) > 99:
            head, _, tail = text.rpartition(", read_")
            self.lines.append(head + ",")
            text = "    " * (self.indent + 1) + "read_" + tail
        self.lines.append(text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Open a block; lines written within it are indented."""
        self.line(opening)
        self.indent += 1
        yield
        self.indent -= 1


class StructSource:
    """Writes the functions of one struct of one message."""

    def __init__(self, source: Source, message: type[Message], cls: type[Struct]) -> None:
        self.source = source
        self.message = message
        self.cls = cls
        self.name = function_name(cls)

    def globals(self) -> None:
        """Declare the class and the offsets of its slots."""
        line = self.source.line
        module = self.cls.__module__.rpartition(".")[2]
        expression = f"{module}.{self.cls.__name__}"
        line(f"cdef type {class_name(self.cls)} = {expression}")
        for f in self.cls.FIELDS:
            line(f"cdef Py_ssize_t {self._offset(f)} = slot_offset({expression}.{f.name})")

    def reader(self) -> None:
        """Write the function that reads the struct."""
        s = self.source
        with s.block(f"cdef object read_{self.name}(Reader* r, object view, int version):"):
            s.line(f"cdef object m = new({class_name(self.cls)})")
            if any(f.is_array for f in self.cls.FIELDS):
                s.line("cdef object items")
                s.line("cdef int64_t count")
            tagged = [f for f in self.cls.FIELDS if f.tag is not None]
            if tagged:
                s.line("cdef int64_t tags, tag")
                s.line("cdef int64_t last = -1")
                s.line("cdef Py_ssize_t stop")
            for f in self.cls.FIELDS:
                if f.tag is not None:
                    s.line(self._put(f, self._default(f)))
                    continue
                condition = self._condition(f.versions)
                if condition:
                    with s.block(f"if {condition}:"):
                        self._read(f)
                    with s.block("else:"):
                        s.line(self._put(f, self._default(f)))
                else:
                    self._read(f)
            if self.message.FLEXIBLE is not None:
                with s.block("if r.flexible:"):
                    self._read_tags(tagged)
            s.line("return m")
        s.line()
        s.line()

    def writer(self) -> None:
        """Write the function that writes the struct."""
        s = self.source
        signature = f"write_{self.name}(Writer* w, list parts, object m, int version) except -1"
        with s.block(f"cdef int {signature}:"):
            if any(self._looks_at_value(f) for f in self.cls.FIELDS):
                s.line("cdef object value")
            if any(f.is_array for f in self.cls.FIELDS):
                s.line("cdef object item")
            tagged = [f for f in self.cls.FIELDS if f.tag is not None]
            if tagged:
                s.line("cdef Py_ssize_t count, start")
            s.line(f"checked(m, {class_name(self.cls)})")
            for f in self.cls.FIELDS:
                condition = self._condition(f.versions)
                if f.tag is None:
                    with self._when(condition):
                        self._write(f)
                if condition and not f.ignorable:
                    with s.block(f"if not ({condition}):"):
                        self._differs(f)
                        with s.block("if value:"):
                            s.line(f'raise ValueError("{f.name}")')
            if self.message.FLEXIBLE is not None:
                with s.block("if w.flexible:"):
                    self._write_tags(tagged)
            s.line("return 0")
        s.line()
        s.line()

    def _looks_at_value(self, f: Field) -> bool:
        refusable = bool(self._condition(f.versions)) and not f.ignorable
        return f.is_array or f.tag is not None or refusable

    def _offset(self, f: Field) -> str:
        return f"{class_name(self.cls)}_{f.name}"

    def _put(self, f: Field, value: str, put: str = "put") -> str:
        return f"{put}(m, {self._offset(f)}, {value})"

    def _get(self, f: Field) -> str:
        return f"get(m, {self._offset(f)})"

    def _condition(self, versions: Versions) -> str:
        """Return the condition for a version to be in a range; empty if it always is."""
        first, last = self.message.VERSIONS
        tests = []
        if versions.first > first:
            tests.append(f"version >= {versions.first}")
        if versions.last < last:
            tests.append(f"version <= {versions.last}")
        return " and ".join(tests)

    def _when(self, condition: str) -> AbstractContextManager[None]:
        return self.source.block(f"if {condition}:") if condition else nullcontext()

    def _nullable(self, f: Field) -> str:
        if f.nullable is None:
            return "False"
        within = Versions(
            max(f.nullable.first, f.versions.first), min(f.nullable.last, f.versions.last)
        )
        if within == f.versions:
            return "True"
        return self._condition(within) or "True"

    def _default(self, f: Field) -> str:
        if f.default is UNSET:
            assert f.is_array, f"{f.name}: a struct that is not tagged is not generated"
            return "[]"
        return "ZERO_UUID" if f.kind == "uuid" else repr(f.default)

    def _read(self, f: Field, put: str = "put") -> None:
        if f.is_array:
            self._read_array(f, put)
            return
        if f.struct is not None:
            value = f"read_{function_name(f.struct)}(r, view, version)"
        elif f.kind == "string":
            value = f"read_string(r, {self._nullable(f)})"
        elif f.kind == "records":
            value = f"read_records(r, view, {self._nullable(f)})"
        else:
            value = f"read_{f.kind}(r)"
        self.source.line(self._put(f, value, put))

    def _read_array(self, f: Field, put: str) -> None:
        s = self.source
        if f.struct is not None:
            item = f"read_{function_name(f.struct)}(r, view, version)"
            smallest = min(
                smallest_struct(f.struct, version, self.message.is_flexible(version))
                for version in range(self.message.VERSIONS.first, self.message.VERSIONS.last + 1)
                if version in f.versions
            )
        else:
            assert f.kind in FIXED, f"{f.name}: an array of {f.kind} is not generated"
            item, smallest = f"read_{f.kind}(r)", FIXED[str(f.kind)][1]
        nullable = self._nullable(f)
        s.line(f"count = read_count(r, {nullable}, {max(1, smallest)})")
        if nullable != "False":
            with s.block("if count < 0:"):
                s.line("items = None")
            with s.block("else:"):
                self._read_items(item)
        else:
            self._read_items(item)
        s.line(self._put(f, "items", put))

    def _read_items(self, item: str) -> None:
        s = self.source
        s.line("items = []")
        with s.block("while count > 0:"):
            s.line(f"(<list>items).append({item})")
            s.line("count -= 1")

    def _read_tags(self, tagged: list[Field]) -> None:
        s = self.source
        if not tagged:
            s.line("skip_tags(r)")
            return
        s.line("tags = read_uvarint(r)")
        with s.block("while tags > 0:"):
            s.line("tags -= 1")
            s.line("tag = read_uvarint(r)")
            with s.block("if tag <= last:"):
                s.line("raise IndexError")
            s.line("last = tag")
            s.line("stop = read_uvarint(r)")
            s.line("take(r, stop)")
            s.line("stop, r.position = r.position, r.position - stop")
            for position, f in enumerate(tagged):
                condition = " and ".join(
                    filter(None, (f"tag == {f.tag}", self._condition(f.versions)))
                )
                with s.block(f"{'el' if position else ''}if {condition}:"):
                    self._read(f, "replace")
            with s.block("else:"):
                s.line("r.position = stop")
            with s.block("if r.position != stop:"):
                s.line("raise IndexError")

    def _write(self, f: Field) -> None:
        s = self.source
        value = self._get(f)
        if f.is_array:
            s.line(f"value = {value}")
            self._write_array(f)
        elif f.struct is not None:
            s.line(f"write_{function_name(f.struct)}(w, parts, {value}, version)")
        elif f.kind == "string":
            s.line(f"write_string(w, {value}, {self._nullable(f)})")
        elif f.kind == "records":
            s.line(f"write_records(w, parts, {value}, {self._nullable(f)})")
        else:
            s.line(f"write_{f.kind}(w, {value})")

    def _write_array(self, f: Field) -> None:
        s = self.source
        if f.struct is not None:
            item = f"write_{function_name(f.struct)}(w, parts, item, version)"
        else:
            item = f"write_{f.kind}(w, item)"
        nullable = self._nullable(f)
        if nullable != "False":
            extra = "" if nullable == "True" else f" and {nullable}"
            with s.block(f"if value is None{extra}:"):
                s.line("write_length(w, -1, False)")
            with s.block("else:"):
                self._write_items(item)
        else:
            self._write_items(item)

    def _write_items(self, item: str) -> None:
        self.source.line("write_length(w, len(value), False)")
        with self.source.block("for item in value:"):
            self.source.line(item)

    def _differs(self, f: Field) -> None:
        """Set `value` to whether a field differs from its default."""
        s = self.source
        s.line(f"value = {self._get(f)}")
        if f.default is UNSET:
            s.line("value = value != []")
        elif f.default is None and f.struct is not None and not f.is_array and f.nullable is None:
            s.line(f"value = value is not None and value != {class_name(f.struct)}()")
        elif f.default is None:
            s.line("value = value is not None")
        else:
            s.line(f"value = value != {self._default(f)}")

    def _write_tags(self, tagged: list[Field]) -> None:
        s = self.source
        if not tagged:
            s.line("append_int8(w, 0)")
            return
        s.line("count = w.size")
        s.line("append_int8(w, 0)")
        for f in sorted(tagged, key=lambda f: f.tag or 0):
            with self._when(self._condition(f.versions)):
                self._differs(f)
                with s.block("if value:"):
                    s.line("w.data[count] += 1")
                    s.line("start = w.size")
                    self._write(f)
                    s.line(f"close_tag(w, {f.tag}, start)")


def class_name(cls: type[Struct]) -> str:
    """Return a name for a class that is unique in the file."""
    return function_name(cls).upper()


def function_name(cls: type[Struct]) -> str:
    module = cls.__module__.rpartition(".")[2]
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
    return name if name.startswith(module) else f"{module}_{name}"
