"""What every page is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from barnabas.console.door import Door
from barnabas.console.form import Form, read_form
from barnabas.console.rates import Rates
from barnabas.console.session import Session
from barnabas.console.undo import Undos
from barnabas.console.window import Window

if TYPE_CHECKING:
    from barnabas.console.rendering import Templates


@dataclass(frozen=True, slots=True)
class Context:
    """The door, the window, the session of a request, and the templates.

    A module with pages has a function `routes(context)` that returns its routes; a page is an
    `async def page(request: Request) -> Response`.
    """

    door: Door
    window: Window
    session: Callable[[Request], Session]
    """Returns the session of a request; there is always one when a page is called."""
    templates: Templates
    """`templates.page(request, "topics.html", {...})` returns the response."""
    exports: bool = True
    """Whether records may be downloaded (`barnabas.console.export.enable`)."""
    rates: Rates = field(default_factory=Rates)
    undos: Undos = field(default_factory=Undos)

    async def form(self, request: Request) -> Form:
        """Return the fields of a POST; raise HTTPException(403) without the session's token.

        Every template's form has `{{ csrf() }}` for it.
        """
        return await read_form(request, self.session(request))
