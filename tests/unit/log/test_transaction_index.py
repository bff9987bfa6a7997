"""The transaction index is byte for byte Kafka's."""

import pytest

from barnabas.log.transaction_index import AbortedTransaction, decode, encode
from barnabas.model.errors import CorruptFileError

GOLDEN = bytes.fromhex(
    "00 00 00 00 00 00 00 00 0f a0 00 00 00 00 00 00"
    "00 64 00 00 00 00 00 00 00 66 00 00 00 00 00 00"
    "00 67"
)
ENTRY = AbortedTransaction(4000, 100, 102, 103)


def test_golden_bytes():
    assert encode([ENTRY]) == GOLDEN
    assert decode(GOLDEN, 0) == [ENTRY]


def test_entries_keep_their_order():
    entries = [ENTRY, AbortedTransaction(1, 90, 110, 111)]
    assert decode(encode(entries), 50) == entries


@pytest.mark.parametrize(
    ("data", "base"),
    [
        (GOLDEN[:-1], 0),
        (GOLDEN, 103),
        (b"\0\1" + GOLDEN[2:], 0),
        (GOLDEN + encode([AbortedTransaction(1, 2, 3, 4)]), 0),
        (encode([AbortedTransaction(1, 9, 3, 4)]), 0),
    ],
    ids=["cut", "below its segment", "version", "order", "ends before it starts"],
)
def test_impossible_files_are_refused(data, base):
    with pytest.raises(CorruptFileError):
        decode(data, base)
