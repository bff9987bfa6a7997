from barnabas.kernels.contract import Buffer, MutableBuffer

def find_offset(slots: Buffer, key: Buffer, /) -> int: ...
def map_records(
    slots: MutableBuffer,
    room: int,
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    start_offset: int,
) -> tuple[int, int]: ...
def map_batches(
    slots: MutableBuffer, room: int, buffer: Buffer, position: int, end: int, start_offset: int
) -> tuple[int, int, int]: ...
def filter_records(
    slots: Buffer,
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    map_end: int,
    drop_tombstones: bool = False,
    shift: int = 0,
) -> tuple[bytearray | None, int, bool, int]: ...
def filter_batches(
    slots: Buffer,
    buffer: Buffer,
    position: int,
    end: int,
    out: MutableBuffer,
    out_position: int,
    map_end: int,
    now_ms: int,
    horizon_ms: int,
    retained: Buffer,
) -> tuple[int, int, bool]: ...
def rebuild_batch(
    buffer: Buffer,
    position: int,
    records: Buffer,
    count: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
) -> bytearray: ...
