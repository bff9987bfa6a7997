"""Actions: first what would be done, then the doing, then what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done, for the page that asks whether to do it."""

    title: str
    text: str
    button: str
    action: str
    """The path that the confirmation is posted to."""
    back: str
    fields: Sequence[tuple[str, str]] = ()
    """What the form carries, besides its token."""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    needs: str = ""
    """The ACL that it takes."""
    command: str = ""
    """The command that does the same."""


def ask(context: Context, request: Request, plan: Plan) -> Response:
    """Return the page that shows a plan and asks for confirmation."""
    values = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    return context.templates.page(request, "confirm.html", values)


def report(
    context: Context,
    request: Request,
    title: str,
    results: Iterable[tuple[str, BaseException | None]],
    back: str,
    *,
    done: str = "done",
) -> Response:
    """Return the page that says what came of each part: its failure, or that it was done."""
    shown = [
        ("good", f"{what}: {done}.") if failure is None else ("bad", f"{what}: {failure}")
        for what, failure in results
    ]
    if not shown:
        shown = [("good", "There was nothing to do.")]
    failed = any(level == "bad" for level, _ in shown)
    return context.templates.page(
        request,
        "done.html",
        {"title": title, "results": shown, "back": back},
        status=409 if failed else 200,
    )
