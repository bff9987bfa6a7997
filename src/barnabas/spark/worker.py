"""What a worker process of Spark keeps from one task to the next.

Spark runs one task after another in a Python worker and offers a data source no place for what it
would keep between them, so the functions here remember: the one place in `spark` that outlives a
call.
"""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext

from barnabas.spark.consumers import Consumers


@cache
def consumers() -> Consumers:
    """Return the consumers of this process."""
    return Consumers()


def settle() -> None:
    """Make the ends of later tasks cheap; called at the end of one.

    PySpark collects garbage after every task, which looks at all objects there are: some fifty
    milliseconds for modules that stay anyway. From here on they are passed over.
    """
    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
