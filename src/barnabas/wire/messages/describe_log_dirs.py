"""DescribeLogDirs (API key 35): what lies in the log directories of a broker."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DescribableLogDirTopic(Struct):
    topic: str = field("string")
    partitions: list[int] = field(["int32"])


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = field([DescribableLogDirTopic], nullable=True)


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int = field("int32")
    partition_size: int = field("int64")
    offset_lag: int = field("int64")
    is_future_key: bool = field("bool")


@struct
class DescribeLogDirsTopic(Struct):
    name: str = field("string")
    partitions: list[DescribeLogDirsPartition] = field([DescribeLogDirsPartition])


@struct
class DescribeLogDirsResult(Struct):
    error_code: int = field("int16")
    log_dir: str = field("string")
    topics: list[DescribeLogDirsTopic] = field([DescribeLogDirsTopic])
    total_bytes: int = field("int64", versions="4+", default=-1, ignorable=True)
    usable_bytes: int = field("int64", versions="4+", default=-1, ignorable=True)
    is_cordoned: bool = field("bool", versions="5+", ignorable=True)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field([DescribeLogDirsResult])
