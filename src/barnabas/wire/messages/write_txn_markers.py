"""WriteTxnMarkers (API key 27): partition leaders are told how transactions ended."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class WritableTxnMarkerTopic(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field(["int32"])


@struct
class WritableTxnMarker(Struct):
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    transaction_result: bool = field("bool")
    topics: list[WritableTxnMarkerTopic] = field([WritableTxnMarkerTopic])
    coordinator_epoch: int = field("int32")
    transaction_version: int = field("int8", versions="2+", ignorable=True)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = field([WritableTxnMarker])


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str = field("string")
    partitions: list[WritableTxnMarkerPartitionResult] = field([WritableTxnMarkerPartitionResult])


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int = field("int64")
    topics: list[WritableTxnMarkerTopicResult] = field([WritableTxnMarkerTopicResult])


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = field([WritableTxnMarkerResult])
