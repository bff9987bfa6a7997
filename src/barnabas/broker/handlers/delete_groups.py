"""DeleteGroups: groups without members, and their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


def handle(broker: Broker, request: Request[DeleteGroupsRequest]) -> None:
    """Delete each group; answer when the last one is durable."""
    gathering = _Gathering(request)
    for group_id in dict.fromkeys(request.body.groups_names):
        groups = broker.groups
        try:
            groups.authorize(request, group_id, Operation.DELETE)
            shard = groups.shard(group_id)
        except RequestError as refusal:
            gathering.answer(DeletableGroupResult(group_id=group_id, error_code=refusal.code))
            continue
        call = groups.call(request)._replace(token=gathering)
        groups.apply(shard, shard.machine.handle_delete(group_id, call))


def refuse(
    request: DeleteGroupsRequest, code: ErrorCode, message: str | None
) -> DeleteGroupsResponse:
    """Answer every group with one error."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in request.groups_names
        ]
    )


class _Gathering:
    """Collects the results of groups on several shards into one answer."""

    def __init__(self, request: Request[DeleteGroupsRequest]) -> None:
        self._request = request
        self._missing = len(set(request.body.groups_names))
        self._results: list[DeletableGroupResult] = []
        if not self._missing:
            request.answer(DeleteGroupsResponse())

    def answer(self, result: DeletableGroupResult) -> None:
        """Take one group's result; the last one sends the answer."""
        self._results.append(result)
        self._missing -= 1
        if not self._missing:
            self._request.answer(DeleteGroupsResponse(results=self._results))
