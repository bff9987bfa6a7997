from barnabas.kernels.python.accumulator import Accumulator as Accumulator
from barnabas.kernels.python.accumulator import PendingBatch as PendingBatch
from barnabas.kernels.python.accumulator import PendingPartition as PendingPartition
from barnabas.kernels.python.accumulator import RecordFuture as RecordFuture
from barnabas.kernels.python.accumulator import Segment as Segment
