"""The highest version that both sides know is spoken; without one the error names both ranges."""

from __future__ import annotations

import pytest

from barnabas.client.errors import UnsupportedApiError
from barnabas.client.negotiation import PeerVersions, VersionRange, version_for_retry

PEER = PeerVersions("broker:9092", [(0, 3, 9), (1, 13, 17)])


def test_the_lower_of_both_highest_versions_is_picked() -> None:
    assert PEER.pick(0, "Produce", VersionRange(0, 12)) == 9
    assert PEER.pick(0, "Produce", VersionRange(0, 5)) == 5
    assert PEER.pick(1, "Fetch", VersionRange(13, 13)) == 13


@pytest.mark.parametrize(
    ("key", "name", "ours", "message"),
    [
        (
            1,
            "Fetch",
            (4, 12),
            r"broker:9092 supports Fetch \(API 1\) in versions 13-17, this client needs 4-12",
        ),
        (0, "Produce", (10, 12), "in versions 3-9, this client needs 10-12"),
        (0, "Produce", (0, 0), "in versions 3-9, this client needs 0"),
        (3, "Metadata", (0, 12), r"broker:9092 does not support Metadata \(API 3\)"),
    ],
)
def test_ranges_that_do_not_meet_are_named(
    key: int, name: str, ours: tuple[int, int], message: str
) -> None:
    with pytest.raises(UnsupportedApiError, match=message):
        PEER.pick(key, name, VersionRange(*ours))


def test_support_is_told_by_version() -> None:
    assert PEER.supports(0)
    assert PEER.supports(0, 9)
    assert not PEER.supports(0, 10)
    assert not PEER.supports(7)


def test_the_second_attempt_uses_what_the_peer_named_or_version_zero() -> None:
    ours = VersionRange(0, 4)
    assert version_for_retry(ours, VersionRange(0, 2)) == 2
    assert version_for_retry(ours, VersionRange(0, 9)) == 4
    assert version_for_retry(ours, None) == 0
