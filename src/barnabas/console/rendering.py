"""Templates and pages: Jinja with escaping on, and text that shows what it has in it.

Keys, client ids, group names and principals are chosen by others: control characters and the marks
that turn the direction of text around are shown as symbols, so that a page cannot be made to say
something that it does not.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import (
    BytecodeCache,
    Environment,
    FileSystemLoader,
    StrictUndefined,
    pass_context,
)
from jinja2.bccache import Bucket
from jinja2.runtime import Context as JinjaContext
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from barnabas.console.folding import folded
from barnabas.console.form import TOKEN_FIELD
from barnabas.console.segments import segment
from barnabas.console.session import Session
from barnabas.console.static_files import StaticFiles
from barnabas.console.subject_links import link_of
from barnabas.console.zone import written, zone_name, zone_of

TEMPLATES = Path(__file__).parent / "templates"
AT_ONCE_S = 0.002
"""How long a page is made before the loop may run."""

_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)
"""The zone of the page that is being rendered: macros do not have the page's values."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\u27e8U+{code:04X}\u27e9"


def visible(value: object) -> str:
    """Return a string with its control and direction characters shown as symbols."""
    return _HIDDEN.sub(_symbol, str(value))


def number(value: float | None) -> str:
    """Return a number with separators; an en dash for one that is not known."""
    if value is None or value != value:  # NaN
        return "–"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3g}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun: `1 record`, `1,000 records`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def size(value: float | None) -> str:
    """Return a number of bytes in a unit that fits."""
    if value is None or value != value or value < 0:
        return "–"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError(value)


def duration(milliseconds: float | None) -> str:
    """Return a duration in one or two units."""
    if milliseconds is None or milliseconds != milliseconds or milliseconds < 0:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = int(milliseconds // 1000)
    for large, small, many in ((86400, 3600, "d h"), (3600, 60, "h min"), (60, 1, "min s")):
        if seconds >= large:
            first, second = many.split()
            rest = seconds % large // small
            return f"{seconds // large} {first}" + (f" {rest} {second}" if rest else "")
    return f"{milliseconds / 1000:.1f} s"


def exact(milliseconds: float | None) -> str:
    """Return a duration with its parts of milliseconds, as long as they matter."""
    if milliseconds is None or not 0 <= milliseconds < 100:
        return duration(milliseconds)
    return f"{milliseconds:.2f} ms" if milliseconds else "–"


def moment(milliseconds: int | None) -> Markup:
    """Return a time element: machines read it in UTC, people in the zone of their choice."""
    if milliseconds is None or not 0 <= milliseconds < 253402300800000:
        return Markup("–")
    exact = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat("T", "milliseconds")[:-6]
    shown = written(milliseconds, _zone.get())
    return Markup('<time datetime="{}Z">{}</time>').format(exact, shown)


def _finalize(value: object) -> object:
    if isinstance(value, Markup) or value is None:
        return value
    return visible(value) if isinstance(value, str) else value


class Page(HTMLResponse):
    """A page whose text is made piece by piece, between which the broker's loop runs."""

    def __init__(self, pieces: Callable[[], Iterator[str]], zone: tzinfo, status: int) -> None:
        super().__init__("", status)
        self._pieces: Callable[[], Iterator[str]] | None = pieces
        self._page_zone = zone

    async def finish(self) -> None:
        """Make the text; it is the body then. Repeating this is a no-op."""
        if self._pieces is None:
            return
        loop = asyncio.get_running_loop()
        token = _zone.set(self._page_zone)
        made = []
        since_s = loop.time()
        try:
            for piece in self._pieces():
                made.append(piece)
                if loop.time() - since_s > AT_ONCE_S:
                    await asyncio.sleep(0)
                    since_s = loop.time()
        finally:
            _zone.reset(token)
        self.body = "".join(made).encode()
        self.headers["content-length"] = str(len(self.body))
        self._pieces = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make the text, and send it."""
        await self.finish()
        await super().__call__(scope, receive, send)


class _Compiled(BytecodeCache):
    """Templates that were compiled in this process."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its code if there is one."""
        code = self._code.get(bucket.key + bucket.checksum)
        if code is not None:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template's code."""
        self._code[bucket.key + bucket.checksum] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


class Templates:
    """Renders pages; what a page always needs is added here."""

    def __init__(
        self,
        session_of: Callable[[Request], Session | None],
        static: StaticFiles,
        common: Mapping[str, Any],
        folders: tuple[Path, ...] = (TEMPLATES,),
    ) -> None:
        """`common` is in every page; `folders` are searched for templates, in order."""
        self._session_of = session_of
        self._static = static
        self._environment = Environment(
            loader=FileSystemLoader([str(folder) for folder in folders]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize,
            auto_reload=False,
            bytecode_cache=_COMPILED,
        )
        self._environment.filters.update(
            {
                "visible": visible,
                "number": number,
                "counted": counted,
                "size": size,
                "duration": duration,
                "exact": exact,
                "moment": moment,
                "segment": segment,
                "subject_link": link_of,
                "folded": folded,
                "shell": shlex.quote,
            }
        )
        self._environment.globals.update(
            {
                **common,
                "static": static.address,
                "csrf": _csrf,
                "segment": segment,
                "live_part": _live_part,
                "live_switch": _live_switch,
            }
        )

    def compile(self) -> None:
        """Compile all templates; the first pages would do that on the loop."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def page(
        self,
        request: Request,
        name: str,
        values: Mapping[str, Any] | None = None,
        *,
        status: int = 200,
        live: str = "",
    ) -> Page:
        """Return a page made from a template; in a stream only its live part, which has its own."""
        if live and request.scope.get("is_live"):
            name = live
        given = self._values(request, values)
        template = self._environment.get_template(name)
        return Page(lambda: template.generate(given), zone_of(given["zone"]), status)

    def render(self, request: Request, name: str, values: Mapping[str, Any] | None = None) -> str:
        """Return the text of a part of a page that is small."""
        given = self._values(request, values)
        token = _zone.set(zone_of(given["zone"]))
        try:
            return self._environment.get_template(name).render(given)
        finally:
            _zone.reset(token)

    def _values(self, request: Request, values: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what a template is given."""
        session = self._session_of(request)
        given: dict[str, Any] = {
            "request": request,
            "path": request.url.path,
            "session": session,
            "visitor": session.visitor if session is not None else None,
            "theme": theme(request),
            "zone": zone_name(request),
        }
        return given | dict(values or {})


def theme(request: Request) -> str:
    """Return the theme that was chosen: light, dark, or the system's (auto)."""
    chosen = request.cookies.get("barnabas-theme", "")
    return chosen if chosen in ("light", "dark") else "auto"


@pass_context
def _csrf(context: JinjaContext) -> Markup:
    """Return the hidden field that a form must have."""
    session: Session | None = context.get("session")
    token = session.token if session is not None else ""
    return Markup('<input type="hidden" name="{}" value="{}">').format(TOKEN_FIELD, escape(token))


@pass_context
def _live_part(context: JinjaContext) -> Markup:
    """Return the attributes of the element whose content a stream replaces."""
    request: Request = context["request"]
    if request.query_params.get("paused") == "yes":
        return Markup("")
    return Markup(' hx-sse:connect="{}" hx-swap="innerMorph"').format(_address(request, live="yes"))


@pass_context
def _live_switch(context: JinjaContext) -> Markup:
    """Return the link that stops the updates of a page, or lets them go on."""
    request: Request = context["request"]
    if request.query_params.get("paused") == "yes":
        text = '<p class="quiet">Updates are paused. <a href="{}">Go on</a></p>'
        return Markup(text).format(_address(request))
    text = '<p class="quiet">Updated while you look. <a href="{}">Pause</a></p>'
    return Markup(text).format(_address(request, paused="yes"))


def _address(request: Request, **more: str) -> str:
    """Return the address of a page, live or paused as given."""
    kept = [
        each for each in request.query_params.multi_items() if each[0] not in ("live", "paused")
    ]
    query = urlencode(kept + list(more.items()))
    return request.url.path + (f"?{query}" if query else "")
