"""What is sent: letters, numbers, or the pieces of a file."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from barnabas.cli.perf.payloads import VARIANTS_MAX, payloads, read_payloads
from barnabas.cli.perf.plan import Plan
from barnabas.model.errors import ConfigError


def some(count: int, **options: object) -> list[bytes]:
    return list(islice(payloads(Plan("produce", "t", **options)), count))


def test_random_letters_have_the_size_and_take_turns() -> None:
    found = some(VARIANTS_MAX + 1, record_size=20)
    assert {len(payload) for payload in found} == {20}
    assert len(set(found)) == VARIANTS_MAX
    assert found[0] == found[-1]
    assert found[0].isalpha()


def test_few_large_payloads_are_made() -> None:
    found = some(5, record_size=400_000)
    assert len(set(found)) == 2
    assert some(2, record_size=0) == [b"", b""]


def test_numbers_count_up() -> None:
    assert some(3, monotonic=True) == [b"0", b"1", b"2"]


def test_a_file_has_a_payload_per_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes("één\n\ntwo\n".encode())
    assert read_payloads(str(path)) == ["één".encode(), b"", b"two"]
    assert set(some(100, payload_file=str(path))) == {"één".encode(), b"", b"two"}
    path.write_bytes(b"a||b")
    assert set(some(100, payload_file=str(path), payload_delimiter="||")) == {b"a", b"b"}


@pytest.mark.parametrize(("content", "reason"), [(b"", "the file is empty"), (None, "no such")])
def test_a_file_without_payloads_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "lines"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"--payload-file {path}: {reason}"):
        read_payloads(str(path))
