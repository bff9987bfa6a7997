"""The Python back end, writing: compiles one straight-line function per message and version.

The function has the signature `encode(message, parts, version)`: it appends pieces of the encoding
to a list. Structs are inlined into it, and adjacent values of fixed size are packed at once.
Records are appended as they are, without a copy. A value that the version cannot express raises
struct.error, AttributeError, TypeError, UnicodeEncodeError or Malformed; `labels` maps the line
that raised to the field that it was writing.
"""

from __future__ import annotations

import struct
from struct import Struct as Layout
from typing import Any

from barnabas.wire.primitives import FIXED, SMALL_UVARINTS, Malformed, uvarint
from barnabas.wire.schema import UNSET, Field, Message, Struct


class EncoderSource:
    """The source of one encoder being written."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.version = version
        self.flexible = message.is_flexible(version)
        self.labels: list[str] = []
        self.names: dict[str, Any] = {
            "Malformed": Malformed,
            "small": SMALL_UVARINTS,
            "uvarint": uvarint,
            "pack": _pack,
        }
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._label = message.__name__
        self._run: list[tuple[str, str, str]] = []
        self._parts = "parts"
        self._line("def encode(m, parts, version):")
        self._indent += 1
        self._line("add = parts.append")
        self._add = "add"
        self._struct(message, "m", "")
        self._flush()

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)
        self.labels.append(self._label)

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _flush(self) -> None:
        """Pack the pending values of fixed size."""
        if not self._run:
            return
        layout = Layout(">" + "".join(letter for letter, _, _ in self._run))
        values = [value for _, value, _ in self._run if value]
        after, self._label = self._label, ", ".join(label for _, _, label in self._run)
        self._run = []
        if values:
            name = self._fresh("pack_")
            self.names[name] = layout.pack
            self._line(f"{self._add}({name}({', '.join(values)}))")
        else:
            self._line(f"{self._add}({bytes(layout.size)!r})")
        self._label = after

    def _pack(self, letter: str, value: str) -> None:
        self._run.append((letter, value, self._label))

    def _struct(self, cls: type[Struct], source: str, path: str) -> None:
        tagged = []
        for f in cls.FIELDS:
            self._label = path + f.name
            if self.version not in f.versions:
                if not f.ignorable:
                    self._refuse(f, source)
            elif f.tag is not None:
                tagged.append(f)
            else:
                self._value(f, source, path)
        if self.flexible:
            self._tags(tagged, source, path)

    def _refuse(self, f: Field, source: str) -> None:
        self._line(f"if {self._differs(f, source)}: raise Malformed('this version lacks it')")

    def _differs(self, f: Field, source: str) -> str:
        """Return the condition for a field to differ from its default."""
        expression = f"{source}.{f.name}"
        if f.default is not UNSET:
            if f.default is not None:
                return f"{expression} != {f.default!r}"
            if f.struct is not None and not f.is_array and f.nullable is None:
                # A tagged struct of defaults is equivalent to none at all.
                parts = " or ".join(self._differs(inner, expression) for inner in f.struct.FIELDS)
                return f"{expression} is not None and ({parts})"
            return f"{expression} is not None"
        if f.is_array:
            return f"{expression} != []"
        assert f.struct is not None
        name = self._fresh("class_")
        self.names[name] = f.struct
        return f"{expression} != {name}()"

    def _value(self, f: Field, source: str, path: str) -> None:
        """Write a field in its place."""
        expression = f"{source}.{f.name}"
        if f.kind in FIXED and not f.is_array:
            if f.kind == "uuid":
                self._line(f"if len({expression}) != 16: raise Malformed('a uuid has 16 bytes')")
            self._pack(FIXED[str(f.kind)][0], expression)
            return
        value = self._fresh("v")
        self._line(f"{value} = {expression}")
        if not f.is_nullable(self.version):
            self._present(f, value, path)
            return
        self._flush()
        self._line(f"if {value} is None: {self._add}({self._null(f)!r})")
        self._line("else:")
        self._indent += 1
        if f.struct is not None and not f.is_array:
            self._pack("b", "1")
        self._present(f, value, path)
        self._flush()
        self._indent -= 1

    def _null(self, f: Field) -> bytes:
        if f.struct is not None and not f.is_array:
            return b"\xff"
        if self.flexible:
            return b"\x00"
        return b"\xff" * (2 if f.kind == "string" and not f.is_array else 4)

    def _present(self, f: Field, value: str, path: str) -> None:
        """Write a value of variable size that is not None."""
        if f.is_array:
            self._array(f, value, path)
        elif f.struct is not None:
            self._struct(f.struct, value, f"{path}{f.name}.")
        else:
            self._sized(str(f.kind), value)

    def _sized(self, kind: str, value: str) -> None:
        """Write a string, bytes or records with their length."""
        if kind == "string":
            self._line(f"{value} = {value}.encode()")
        self._length(f"len({value})", "h" if kind == "string" else "i")
        self._line(f"{self._add}({value})")

    def _length(self, length: str, letter: str) -> None:
        if not self.flexible:
            self._pack(letter, length)
            self._flush()
            return
        self._flush()
        name = self._fresh("n")
        self._line(f"{name} = {length} + 1")
        self._line(f"{self._add}(small[{name}] if {name} < 128 else uvarint({name}))")

    def _array(self, f: Field, value: str, path: str) -> None:
        self._length(f"len({value})", "i")
        if f.struct is None and f.kind in FIXED and f.kind != "uuid":
            letter = FIXED[str(f.kind)][0]
            self._line(f"{self._add}(pack(f'>{{len({value})}}{letter}', {value}))")
            return
        item = self._fresh("m")
        self._line(f"for {item} in {value}:")
        self._indent += 1
        if f.struct is not None:
            self._struct(f.struct, item, f"{path}{f.name}.")
        elif f.kind == "uuid":
            self._line(f"if len({item}) != 16: raise Malformed('a uuid has 16 bytes')")
            self._line(f"{self._add}(bytes({item}))")
        else:
            self._sized(str(f.kind), item)
        self._flush()
        self._indent -= 1

    def _tags(self, tagged: list[Field], source: str, path: str) -> None:
        """Write the tagged section: fields that differ from their defaults, by ascending tag."""
        if not tagged:
            self._pack("x", "")
            return
        self._flush()
        outer_add = self._add
        pieces, count, piece = (self._fresh(prefix) for prefix in ("tags", "n", "piece"))
        self._line(f"{count} = 0")
        self._line(f"{pieces} = []")
        for f in sorted(tagged, key=lambda f: f.tag or 0):
            self._label = path + f.name
            self._line(f"if {self._differs(f, source)}:")
            self._indent += 1
            self._line(f"{count} += 1")
            self._line(f"{piece} = []")
            self._add = f"{piece}.append"
            self._value(f, source, path)
            self._flush()
            self._add = outer_add
            self._line(f"{pieces}.append(uvarint({f.tag}) + uvarint(sum(map(len, {piece}))))")
            self._line(f"{pieces}.extend({piece})")
            self._indent -= 1
        self._line(f"{self._add}(small[{count}])")
        self._line(f"for {piece} in {pieces}: {self._add}({piece})")


def _pack(layout: str, values: list[Any]) -> bytes:
    return struct.pack(layout, *values)
