"""Which offsets a request may commit or delete; the others are answered beside it.

A coordinator stores offsets of any partition. Whether a partition exists, and whether the caller
may read it, is checked by the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


Errors = dict[tuple[int, int], ErrorCode]
"""What is wrong with partitions, by the positions of topic and partition in the request."""


def committable(
    broker: Broker, request: Request[Any], *, by_id: bool = False
) -> Request[Any] | Committable:
    """Keep in a request only the valid partitions; return the token that gets the response."""
    errors = partition_errors(broker, request, by_id=by_id)
    return Committable(request, errors) if errors else request


def partition_errors(broker: Broker, request: Request[Any], *, by_id: bool = False) -> Errors:
    """Return what is wrong with the partitions of a request."""
    errors: Errors = {}
    cluster, session = broker.cluster, request.session
    for position, topic in enumerate(request.body.topics):
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        if name is None:
            continue  # an unknown id has an error of its own
        if not broker.allows(session, Operation.READ, ResourceType.TOPIC, name):
            for number in range(len(topic.partitions)):
                errors[position, number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            continue
        view = cluster.topic(name)
        count = 0 if view is None else len(view.partitions)
        for number, partition in enumerate(topic.partitions):
            if not 0 <= partition.partition_index < count:
                errors[position, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


class Committable:
    """Removes invalid partitions from a request, and adds their errors to its response.

    It replaces the request as a reply's token. Requests and responses of OffsetCommit,
    TxnOffsetCommit and OffsetDelete are alike in what is used here.
    """

    def __init__(self, request: Request[Any], errors: Errors) -> None:
        self._request = request
        self._topics: list[Any] = request.body.topics
        self._errors = errors
        request.body.topics = [
            self._without_errors(position, topic) for position, topic in enumerate(self._topics)
        ]

    def answer(self, response: Any) -> None:
        """Send the response, with every partition where it was in the request."""
        if not response.topics:  # the request was rejected as a whole
            self._request.answer(response)
            return
        for position, (asked, answered) in enumerate(
            zip(self._topics, response.topics, strict=True)
        ):
            self._put_back(position, asked, answered)
        self._request.answer(response)

    def _without_errors(self, position: int, topic: Any) -> Any:
        fields = {field.name: getattr(topic, field.name) for field in topic.FIELDS}
        fields["partitions"] = [
            partition
            for number, partition in enumerate(topic.partitions)
            if (position, number) not in self._errors
        ]
        return type(topic)(**fields)

    def _put_back(self, position: int, asked: Any, answered: Any) -> None:
        (result_field,) = (field for field in answered.FIELDS if field.name == "partitions")
        for number, partition in enumerate(asked.partitions):
            code = self._errors.get((position, number))
            if code is not None:
                result = result_field.struct(
                    partition_index=partition.partition_index, error_code=code
                )
                answered.partitions.insert(number, result)
