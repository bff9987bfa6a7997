from barnabas.kernels.batch_header import BatchHeader
from barnabas.kernels.contract import Buffer, Faults, MutableBuffer

def scan_batch(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader: ...
def scan_batches(buffer: Buffer, position: int = 0, end: int = -1) -> list[BatchHeader]: ...
def check_batch(buffer: Buffer, position: int = 0, end: int = -1) -> BatchHeader: ...
def inspect_batch(
    buffer: Buffer,
    position: int = 0,
    end: int = -1,
    timestamp_min: int = ...,
    timestamp_max: int = ...,
    require_key: bool = False,
) -> tuple[BatchHeader, int, int, Faults]: ...
def validate_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    timestamp_min: int = ...,
    timestamp_max: int = ...,
    require_key: bool = False,
    first: int = 0,
) -> tuple[int, int, Faults]: ...
def split_records(buffer: Buffer, start: int, end: int, count: int) -> tuple[int, int, int]: ...
def assign_offsets(
    buffer: MutableBuffer, position: int, base_offset: int, leader_epoch: int
) -> None: ...
def stamp_timestamp(
    buffer: MutableBuffer, position: int, append_time: bool, max_timestamp: int
) -> int: ...
def stamp_producer(
    buffer: MutableBuffer,
    position: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = False,
) -> int: ...
