from collections.abc import Callable, Iterable, Iterator
from typing import Any

from barnabas.kernels.contract import Buffer
from barnabas.kernels.cython.column_store import ColumnStore
from barnabas.kernels.cython.consumer_record import ConsumerRecord

class RecordCursor:
    topic: str
    partition: int
    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        position: int,
        *,
        unpack: Callable[[int, memoryview, int], Buffer | Iterator[tuple[Buffer, int]]],
        check_crcs: bool = True,
        aborted: Iterable[tuple[int, int]] | None = None,
        key_deserializer: Any = None,
        value_deserializer: Any = None,
    ) -> None: ...
    @property
    def position(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def progressed(self) -> bool: ...
    @property
    def exhausted(self) -> bool: ...
    @property
    def unpacking(self) -> bool: ...
    @property
    def bytes_left(self) -> int: ...
    def survey(self) -> tuple[int, int]: ...
    def prepare(self, size_max: int) -> None: ...
    def take(self, count: int, /) -> list[ConsumerRecord]: ...
    def fill(self, store: ColumnStore, count: int, /) -> int: ...
