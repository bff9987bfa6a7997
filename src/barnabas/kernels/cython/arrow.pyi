from barnabas.kernels.contract import Buffer, Columns

def records_to_columns(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> Columns: ...
