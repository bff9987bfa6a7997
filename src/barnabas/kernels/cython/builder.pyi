from collections.abc import Callable, Iterable, Sequence

from barnabas.kernels.contract import Buffer, Column, Row

class BatchBuilder:
    @property
    def count(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    def __init__(self, limit: int = 0) -> None: ...
    @property
    def size(self) -> int: ...
    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
        offset_delta: int = -1,
    ) -> int: ...
    def append_many(self, rows: Sequence[Row], start: int = 0) -> int: ...
    def append_columns(
        self,
        timestamps: Buffer | None,
        keys: Column | None,
        values: Column | None,
        start: int,
        stop: int,
        timestamp: int = ...,
    ) -> int: ...
    def finish(
        self,
        *,
        codec: int = 0,
        compress: Callable[[memoryview], Buffer] | None = None,
        base_offset: int = 0,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        attributes: int = 0,
        last_offset_delta: int = -1,
    ) -> bytearray: ...
