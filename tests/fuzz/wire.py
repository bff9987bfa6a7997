"""Random bytes into every decoder: a message or RemoteProtocolError, never anything else.

    python -m tests.fuzz.wire --seconds 600 --seed 7

Half of the inputs are noise, half are real messages with some bytes changed, cut out or doubled. A
message that is read is written again and read once more: that must give the same message.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from random import Random
from typing import Any

from tests.unit.wire.samples import all_versions, random_message

from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.codec import decode, encode
from barnabas.wire.header import decode_request_header

EDGES = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)


def noise(source: Random) -> bytes:
    """Return random bytes, with a taste for those that mean something in lengths."""
    return bytes(
        source.choice(EDGES) if source.random() < 0.6 else source.randrange(256)
        for _ in range(source.choice((0, 1, 4, 20, 60, 200)))
    )


def damaged(data: bytes, source: Random) -> bytes:
    """Return real bytes with some of them changed, cut out or doubled."""
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        if not out:
            break
        start = source.randrange(len(out))
        stop = start + source.choice((1, 1, 2, 5))
        match source.randrange(3):
            case 0:
                out[start] = source.choice(EDGES)
            case 1:
                del out[start:stop]
            case _:
                out[start:start] = out[start:stop]
    return bytes(out)


def check(cls: type[Any], version: int, data: bytes) -> bool:
    """Feed one input to one decoder; tell whether it was read."""
    try:
        message, end = decode(cls, data, version)
    except RemoteProtocolError:
        return False
    assert 0 <= end <= len(data)
    again, _ = decode(cls, encode(message, version), version)
    # A tagged struct of defaults, which nobody writes, is read as such and not written again.
    assert again == message or encode(again, version) == encode(message, version)
    return True


def one_round(source: Random) -> tuple[int, int]:
    """Feed every decoder once with each kind of input; return how many were read, and all."""
    read = total = 0
    for cls, version in all_versions():
        real = encode(random_message(cls, version, source, sizes=(0, 1, 4)), version)
        for data in (noise(source), damaged(real, source)):
            read += check(cls, version, data)
            total += 1
    with contextlib.suppress(RemoteProtocolError):
        decode_request_header(noise(source))
    return read, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    seed = options.seed
    read = total = 0
    while time.monotonic() < deadline:
        print(f"seed {seed}", end="\r")
        more_read, more = one_round(Random(seed))
        read, total, seed = read + more_read, total + more, seed + 1
    print(f"seeds {options.seed} to {seed - 1}: {total} inputs, {read} of them read, no surprise")


if __name__ == "__main__":
    main()
