"""The choice between the back ends: compiled C for the hottest messages, Python for all.

The C codecs are used when the kernels are the compiled ones: BARNABAS_KERNELS selects both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from barnabas import kernels
from barnabas.wire.schema import Message

HOT = {
    "ProduceRequest": "produce_request",
    "ProduceResponse": "produce_response",
    "FetchRequest": "fetch_request",
    "FetchResponse": "fetch_response",
    "OffsetCommitRequest": "offset_commit_request",
    "OffsetCommitResponse": "offset_commit_response",
}


def native_function(verb: str, cls: type[Message]) -> Callable[..., Any] | None:
    """Return the C function that encodes or decodes a message in all versions, if any."""
    if kernels.NAME != "cython" or cls.__name__ not in HOT:
        return None
    try:
        hot = import_module("barnabas.wire.hot")
    except ModuleNotFoundError:
        if os.environ.get("BARNABAS_KERNELS") == "cython":
            raise
        return None
    function: Callable[..., Any] = getattr(hot, f"{verb}_{HOT[cls.__name__]}")
    return function
