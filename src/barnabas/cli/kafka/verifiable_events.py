"""The lines that the verifiable clients print: JSON, as Kafka's system tests read them."""

from __future__ import annotations

import json
import threading
import time

_lock = threading.Lock()


def print_event(name: str, **fields: object) -> None:
    """Print an event on one line; several threads may."""
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    with _lock:
        print(json.dumps(event, ensure_ascii=False, separators=(",", ":")), flush=True)
