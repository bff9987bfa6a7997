"""The Python back end, reading: compiles one straight-line function per message and version.

The function has the signature `decode(buffer, position, version) -> (message, end)`. Structs are
inlined into it, and adjacent fields of fixed size are read by one `unpack_from`. It trusts nothing:
lengths and counts are checked against the remaining bytes before anything is allocated. It raises
IndexError, struct.error, UnicodeDecodeError or Malformed; `labels` maps the line that raised to the
field that it was reading, which costs nothing in the normal case.
"""

from __future__ import annotations

import struct
from struct import Struct as Layout
from typing import Any

from barnabas.wire.primitives import FIXED, Malformed, long_uvarint, skip_tags
from barnabas.wire.schema import UNSET, Field, Message, Struct


class DecoderSource:
    """The source of one decoder being written."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.version = version
        self.flexible = message.is_flexible(version)
        self.labels: list[str] = []
        self.names: dict[str, Any] = {
            "Malformed": Malformed,
            "long_uvarint": long_uvarint,
            "skip_tags": skip_tags,
            "new": object.__new__,
            "unpack_from": struct.unpack_from,
        }
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._label = message.__name__
        self._line("def decode(buffer, p, version):")
        self._indent += 1
        self._line("end = len(buffer)")
        if _holds_records(message, version):
            self._line("view = memoryview(buffer)")
        self._struct(message, "m", "")
        self._line("return m, p")

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)
        self.labels.append(self._label)

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _constant(self, prefix: str, value: object) -> str:
        for name, known in self.names.items():
            if known is value and name.startswith(prefix):
                return name
        name = self._fresh(prefix)
        self.names[name] = value
        return name

    def _struct(self, cls: type[Struct], target: str, path: str) -> None:
        """Create an object of a struct class and read its fields into it."""
        self._line(f"{target} = new({self._constant('class_', cls)})")
        inline = [f for f in cls.FIELDS if self.version in f.versions and f.tag is None]
        tagged = [f for f in cls.FIELDS if self.version in f.versions and f.tag is not None]
        for f in cls.FIELDS:
            if f not in inline:
                self._line(f"{target}.{f.name} = {self._default(f)}")
        run: list[Field] = []
        for f in inline:
            self._label = path + f.name
            if f.kind in FIXED and not f.is_array:
                run.append(f)
            else:
                self._inline(f, target, path, run)
                run = []
        self._run(run, target, path)
        if self.flexible:
            self._tags(tagged, target, path)

    def _default(self, f: Field) -> str:
        if f.default is not UNSET:
            return repr(f.default)
        return "[]" if f.is_array else f"{self._constant('class_', f.kind)}()"

    def _run(self, run: list[Field], target: str, path: str, extra: str = "") -> str:
        """Read adjacent fields of fixed size at once, and possibly the length that follows.

        `extra` is the struct letter of that length; the name of its variable is returned.
        """
        length = self._fresh("n") if extra else ""
        if run or extra:
            layout = Layout(">" + "".join(FIXED[str(f.kind)][0] for f in run) + extra)
            targets = [f"{target}.{f.name}" for f in run] + ([length] if extra else [])
            if run:
                self._label = path + run[0].name
            name = self._fresh("unpack_")
            self.names[name] = layout.unpack_from
            self._line(f"{', '.join(targets)}, = {name}(buffer, p)")
            self._line(f"p += {layout.size}")
        return length

    def _uvarint(self, name: str) -> str:
        self._line(f"{name} = buffer[p]")
        self._line("p += 1")
        self._line(f"if {name} > 127: {name}, p = long_uvarint(buffer, p, {name})")
        return name

    def _length(self, f: Field, target: str, path: str, run: list[Field], letter: str) -> str:
        """Read a length or count, -1 for null; return the variable that holds it."""
        if self.flexible:
            self._run(run, target, path)
            self._label = path + f.name
            length = self._uvarint(self._fresh("n"))
            self._line(f"{length} -= 1")
            return length
        length = self._run(run, target, path, letter)
        self._label = path + f.name
        return length

    def _inline(self, f: Field, target: str, path: str, run: list[Field]) -> None:
        """Read a field of variable size, after the run of fixed ones before it."""
        expression = f"{target}.{f.name}"
        if f.struct is not None and not f.is_array:
            self._run(run, target, path)
            self._label = path + f.name
            if f.is_nullable(self.version):
                self._line(f"{expression} = None")
                self._line("p += 1")
                self._line("if buffer[p - 1] < 128:")
                self._indent += 1
                self._nested(f, expression, path)
                self._indent -= 1
            else:
                self._nested(f, expression, path)
            return
        letter = "h" if f.kind == "string" and not f.is_array else "i"
        length = self._length(f, target, path, run, letter)
        if f.is_nullable(self.version):
            bad = f"{length} < -1"
            self._line(f"if {length} == -1: {expression} = None")
            self._line("else:")
            self._indent += 1
            self._content(f, expression, path, length, bad)
            self._indent -= 1
        else:
            self._content(f, expression, path, length, f"{length} < 0")

    def _nested(self, f: Field, expression: str, path: str) -> None:
        assert f.struct is not None
        item = self._fresh("m")
        self._struct(f.struct, item, f"{path}{f.name}.")
        self._label = path + f.name
        self._line(f"{expression} = {item}")

    def _content(self, f: Field, expression: str, path: str, length: str, bad: str) -> None:
        """Read what follows a length: text, bytes, records or elements."""
        if f.is_array:
            self._array(f, expression, path, length, bad)
            return
        stop = self._fresh("q")
        self._line(f"{stop} = p + {length}")
        self._line(f"if {bad} or {stop} > end: raise Malformed(f'its size is {{{length}}}')")
        self._line(f"{expression} = {_READ[str(f.kind)].format(f'p:{stop}')}")
        self._line(f"p = {stop}")

    def _array(self, f: Field, expression: str, path: str, length: str, bad: str) -> None:
        smallest = max(1, self._smallest_item(f))
        self._line(
            f"if {bad} or {length} > (end - p) // {smallest}: "
            f"raise Malformed(f'its count is {{{length}}}')"
        )
        if f.struct is None and f.kind in FIXED:
            letter, width = FIXED[str(f.kind)]
            self._line(f"{expression} = [*unpack_from({_layout_of(length, letter)}, buffer, p)]")
            self._line(f"p += {width} * {length}")
            return
        items, item = self._fresh("items"), self._fresh("m")
        self._line(f"{items} = {expression} = []")
        self._line(f"for _ in range({length}):")
        self._indent += 1
        if f.struct is not None:
            self._struct(f.struct, item, f"{path}{f.name}.")
            self._label = path + f.name
        elif self.flexible:
            size = self._uvarint(self._fresh("n"))
            self._line(f"{size} -= 1")
            self._item(str(f.kind), item, size)
        else:
            size = self._run([], "", path, "h" if f.kind == "string" else "i")
            self._item(str(f.kind), item, size)
        self._line(f"{items}.append({item})")
        self._indent -= 1

    def _item(self, kind: str, item: str, size: str) -> None:
        self._line(
            f"if {size} < 0 or {size} > end - p: raise Malformed(f'an element has size {{{size}}}')"
        )
        self._line(f"{item} = {_READ[kind].format(f'p:p + {size}')}")
        self._line(f"p += {size}")

    def _tags(self, tagged: list[Field], target: str, path: str) -> None:
        """Read the tagged section that ends every struct of a flexible version."""
        self._label = f"{path}tags"
        count = self._uvarint(self._fresh("n"))
        if not tagged:
            self._line(f"if {count}: p = skip_tags(buffer, p, {count})")
            return
        tag, last, size, stop = (self._fresh(prefix) for prefix in ("tag", "last", "n", "q"))
        self._line(f"{last} = -1")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        self._uvarint(tag)
        self._line(
            f"if {tag} <= {last}: raise Malformed(f'tag {{{tag}}} comes after tag {{{last}}}')"
        )
        self._line(f"{last} = {tag}")
        self._uvarint(size)
        self._line(f"{stop} = p + {size}")
        self._line(
            f"if {stop} > end: raise Malformed(f'tag {{{tag}}} of {{{size}}} bytes does not fit')"
        )
        for f in tagged:
            self._line(f"if {tag} == {f.tag}:")
            self._indent += 1
            self._label = path + f.name
            if f.kind in FIXED and not f.is_array:
                self._run([f], target, path)
            else:
                self._inline(f, target, path, [])
            self._label = f"{path}tags"
            self._line(f"if p != {stop}: raise Malformed(f'tag {{{tag}}} has another size')")
            self._line("continue")
            self._indent -= 1
        self._line(f"p = {stop}")
        self._indent -= 1

    def _smallest_item(self, f: Field) -> int:
        if f.struct is not None:
            return smallest_struct(f.struct, self.version, self.flexible)
        return smallest_value(str(f.kind), self.flexible)


def _layout_of(count: str, letter: str) -> str:
    """Return the expression for the layout of an array."""
    # struct reads "3i" as three integers, but "316s" as one string of 316 bytes.
    return f"f'>{{{count}}}{letter}'" if len(letter) == 1 else f"'>' + {letter!r} * {count}"


_READ = {
    "string": "str(buffer[{}], 'utf-8')",
    "bytes": "bytes(buffer[{}])",
    "records": "view[{}]",
}


def smallest_value(kind: str, flexible: bool) -> int:
    """Return the minimum size of a primitive in bytes."""
    if kind in FIXED:
        return FIXED[kind][1]
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def smallest_struct(cls: type[Struct], version: int, flexible: bool) -> int:
    """Return the minimum size of a struct in a version, which limits array counts."""
    size = 1 if flexible else 0
    for f in cls.FIELDS:
        if version not in f.versions or f.tag is not None:
            continue
        if f.is_array:
            size += 1 if flexible else 4
        elif f.struct is None:
            size += smallest_value(str(f.kind), flexible)
        elif f.is_nullable(version):
            size += 1
        else:
            size += smallest_struct(f.struct, version, flexible)
    return size


def _holds_records(cls: type[Struct], version: int) -> bool:
    return any(
        f.kind == "records" or (f.struct is not None and _holds_records(f.struct, version))
        for f in cls.FIELDS
        if version in f.versions
    )
