"""Ask about many things until each has an answer or a failure that is final.

Every admin call about several things ends here: one thing's failure is its outcome and never takes
the others down; a passing failure is asked about again, together with all others that are still
open, as long as there is time. Then the last failure of a thing is its outcome. Nothing is lost:
the result has an entry foreverything that was asked about, in the order in which it was asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.failures import coded
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Verdict, verdict
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.request_errors import UnknownError

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

Ask = Callable[[list[Key]], Awaitable[Mapping[Key, Answer | RequestError]]]
"""Asks once about some things, and gives the outcome for each."""


def is_passing(key: object, failure: RequestError) -> bool:
    """Return whether the same question may get another answer later."""
    return verdict(failure) is not Verdict.FAIL


async def settle(
    client: ClusterClient,
    keys: Iterable[Key],
    ask: Ask[Key, Answer],
    *,
    passing: Callable[[Key, RequestError], bool] = is_passing,
    topics: Iterable[str] = (),
    timeout_ms: float | None = None,
) -> dict[Key, Answer | RequestError]:
    """Return an answer or a failure forevery key.

    `topics` are refreshed where a failure blames the view of the cluster. Raises what `ask` raises
    for good, if nothing is known about any key by then.
    """
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    settled: dict[Key, Answer | RequestError] = {}
    waiting: dict[Key, RequestError] = {}

    async def attempt() -> None:
        missing = [key for key in wanted if key not in settled]
        outcomes = await ask(missing)
        waiting.clear()
        for key in missing:
            outcome = outcomes[key] if key in outcomes else _unanswered(key)
            if isinstance(outcome, RequestError) and passing(key, outcome):
                waiting[key] = outcome
            else:
                settled[key] = outcome
        if waiting:
            raise next(iter(waiting.values()))

    try:
        await client.retrying(attempt, topics=topics, timeout_ms=timeout_ms)
    except BarnabasError as failure:
        if not settled and not waiting:
            raise
        for key in wanted:
            settled.setdefault(key, waiting.get(key) or coded(failure))
    return {key: settled[key] for key in wanted}


def settled_or_raise(outcomes: Mapping[Key, Answer | RequestError]) -> dict[Key, Answer]:
    """Return the answers if there is no failure among them; otherwise raise the first."""
    answers: dict[Key, Answer] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, RequestError):
            raise outcome
        answers[key] = outcome
    return answers


def _unanswered(key: object) -> RequestError:
    return UnknownError(f"{key}: the broker's response does not mention it")
