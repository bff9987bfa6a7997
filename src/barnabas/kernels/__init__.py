"""Hot loops, written twice: `python/` is the reference, `cython/` its compiled twin.

The compiled kernels are taken when they are there, else the Python ones; see `choice`. `NAME` says
which were chosen. `python/__init__.py` declares the names, and the Python functions and classes are
their contract: a test holds the compiled ones to the same signatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.kernels.batch_header import APPEND_TIME_BIT as APPEND_TIME_BIT
from barnabas.kernels.batch_header import CODEC_MASK as CODEC_MASK
from barnabas.kernels.batch_header import CONTROL_BIT as CONTROL_BIT
from barnabas.kernels.batch_header import DELETE_HORIZON_BIT as DELETE_HORIZON_BIT
from barnabas.kernels.batch_header import HEADER_SIZE as HEADER_SIZE
from barnabas.kernels.batch_header import SPECIAL_MASK as SPECIAL_MASK
from barnabas.kernels.batch_header import TRANSACTIONAL_BIT as TRANSACTIONAL_BIT
from barnabas.kernels.batch_header import BatchHeader as BatchHeader
from barnabas.kernels.choice import choose
from barnabas.kernels.contract import NO_TIMESTAMP as NO_TIMESTAMP
from barnabas.kernels.contract import SLOT_SIZE as SLOT_SIZE
from barnabas.kernels.contract import TIMESTAMP_MAX as TIMESTAMP_MAX
from barnabas.kernels.contract import TIMESTAMP_MIN as TIMESTAMP_MIN
from barnabas.kernels.contract import Buffer as Buffer
from barnabas.kernels.contract import Column as Column
from barnabas.kernels.contract import Columns as Columns
from barnabas.kernels.contract import ConsumerColumns as ConsumerColumns
from barnabas.kernels.contract import Fault as Fault
from barnabas.kernels.contract import Faults as Faults
from barnabas.kernels.contract import Headers as Headers
from barnabas.kernels.contract import MutableBuffer as MutableBuffer
from barnabas.kernels.contract import Row as Row

if TYPE_CHECKING:
    from barnabas.kernels.python import *  # noqa: F403

NAME, _names = choose(__name__)
globals().update(_names)
