"""Which partitions of an offset commit may be committed; the others are answered beside it.

A coordinator stores offsets of any partition. That a partition exists, and that the caller may
read it, is for the broker to know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


class Committable:
    """Takes partitions that cannot be committed out of a request, and puts them into its answer.

    It stands for the request as a reply's token. Requests and responses of OffsetCommit and of
    TxnOffsetCommit are alike in what is used here.
    """

    def __init__(self, broker: Broker, request: Request[Any]) -> None:
        self._request = request
        self._topics: list[Any] = request.body.topics
        self._errors: dict[tuple[int, int], ErrorCode] = {}
        for position, topic in enumerate(self._topics):
            self._check(broker, position, topic)
        if self._errors:
            request.body.topics = [
                self._without_errors(position, topic) for position, topic in enumerate(self._topics)
            ]

    def answer(self, response: Any) -> None:
        """Send the response, with every partition where it was in the request."""
        if self._errors:
            for position, (asked, told) in enumerate(
                zip(self._topics, response.topics, strict=True)
            ):
                self._put_back(position, asked, told)
        self._request.answer(response)

    def _check(self, broker: Broker, position: int, topic: Any) -> None:
        name = topic.name or broker.topic_name(topic.topic_id)
        if name is None:
            return  # an id that nobody knows has an error of its own
        session = self._request.session
        view = broker.cluster.topic(name)
        for number, partition in enumerate(topic.partitions):
            if not broker.allows(session, Operation.READ, ResourceType.TOPIC, name):
                self._errors[position, number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif view is None or not 0 <= partition.partition_index < len(view.partitions):
                self._errors[position, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _without_errors(self, position: int, topic: Any) -> Any:
        fields = {field.name: getattr(topic, field.name) for field in topic.FIELDS}
        fields["partitions"] = [
            partition
            for number, partition in enumerate(topic.partitions)
            if (position, number) not in self._errors
        ]
        return type(topic)(**fields)

    def _put_back(self, position: int, asked: Any, told: Any) -> None:
        (result_field,) = (field for field in told.FIELDS if field.name == "partitions")
        for number, partition in enumerate(asked.partitions):
            code = self._errors.get((position, number))
            if code is not None:
                result = result_field.struct(
                    partition_index=partition.partition_index, error_code=code
                )
                told.partitions.insert(number, result)
