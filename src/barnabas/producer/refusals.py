"""Why a record was refused, in words: names the value, the bound and the option."""

from __future__ import annotations

from typing import Any

from barnabas.client.errors import KafkaTimeoutError, ProducerClosed
from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels.accumulator_contract import Refusal
from barnabas.model.errors import InvalidValueError
from barnabas.model.request_errors import MessageSizeTooLargeError
from barnabas.producer.core import ProducerCore
from barnabas.producer.preparation import Arguments
from barnabas.producer.topics import check_topic

_BYTES = (bytes, bytearray, memoryview)


def refusal_error(core: ProducerCore, refusal: int, arguments: Arguments) -> Exception:
    """Return the exception for a record that will not be taken however long one waits."""
    topic, value, key, headers, partition, timestamp_ms = arguments
    if refusal == Refusal.TYPE:
        return _type_error(topic, value, key, headers, partition, timestamp_ms)
    if refusal == Refusal.EMPTY:
        return InvalidValueError(f"a record for {topic!r} needs at least one of key and value")
    if refusal == Refusal.PARTITION:
        count = core.accumulator.partition_count(topic)
        return InvalidValueError(
            f"partition {partition} of {topic!r}: must be 0 to {count - 1}, it has {count}"
        )
    if refusal == Refusal.SIZE:
        return _size_error(core.options, topic, value, key)
    assert refusal == Refusal.CLOSED, refusal
    if core.closing or core.transacting is None:
        return ProducerClosed("the producer is closed: it takes no more records")
    transaction = core.transacting.transaction
    return transaction.error or transaction.illegal("send a record")


def memory_error(options: ProducerOptions, topic: str, waited_ms: float) -> KafkaTimeoutError:
    """Return the exception for a record that found no memory in time."""
    return KafkaTimeoutError(
        f"no memory for a record of {topic!r} after {waited_ms:.0f} ms (max.block.ms="
        f"{options.max_block_ms}): buffer.memory={options.buffer_memory} is taken by records that "
        "brokers have not acknowledged yet"
    )


def _type_error(
    topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp_ms: Any
) -> Exception:
    try:
        check_topic(topic)
    except (TypeError, InvalidValueError) as failure:
        return failure
    for name, field in (("value", value), ("key", key)):
        if field is not None and not isinstance(field, _BYTES):
            return TypeError(
                f"{name} of type {type(field).__name__}: must be bytes, bytearray, memoryview or "
                f"None, or what {name}_serializer turns to that"
            )
    for name, number in (("partition", partition), ("timestamp_ms", timestamp_ms)):
        if number is not None and not isinstance(number, int):
            return TypeError(f"{name} {number!r}: must be a whole number")
    return TypeError(f"headers {headers!r}: must be a list of (str, bytes) tuples")


def _size_error(options: ProducerOptions, topic: str, value: Any, key: Any) -> Exception:
    size = sum(memoryview(field).nbytes for field in (key, value) if field is not None)
    bound = (
        f"buffer.memory={options.buffer_memory}"
        if options.buffer_memory < options.max_request_size
        else f"max.request.size={options.max_request_size}"
    )
    return MessageSizeTooLargeError(
        f"a record for {topic!r} with {size} bytes of key and value is larger than {bound} allows"
    )
