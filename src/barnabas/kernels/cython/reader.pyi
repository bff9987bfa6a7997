from collections.abc import Iterator

from barnabas.kernels.contract import Buffer, Headers

class Record:
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...
    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class RecordReader:
    def __init__(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None = None,
    ) -> None: ...
    @property
    def remaining(self) -> int: ...
    def take(self, count: int, /) -> list[Record]: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __next__(self) -> Record: ...

def read_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> RecordReader: ...
