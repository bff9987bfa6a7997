"""The table of APIs and the header rules that follow from it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.apis import API_BY_KEY, API_BY_NAME, APIS, api, api_of, module_name
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.schema import Versions


def test_keys_and_names_are_unique() -> None:
    assert len(API_BY_KEY) == len(API_BY_NAME) == len(APIS)


def test_messages_are_found_by_name_and_key() -> None:
    assert API_BY_NAME["Fetch"] is api(1)
    assert api(1).request is FetchRequest
    assert api(1).response is FetchResponse
    assert api_of(FetchResponse) is api(1)
    assert module_name("ListOffsets") == "list_offsets"


def test_an_unknown_key_is_the_peers_mistake() -> None:
    with pytest.raises(RemoteProtocolError, match="no API has the key 999"):
        api(999)


def test_versions_come_from_the_declarations() -> None:
    assert api(0).versions == Versions(0, 13)
    assert api(22).versions == Versions(0, 6)
    assert api(22).stable_versions == Versions(0, 5)
    assert api(1).flexible_from == 12
    assert api(17).flexible_from is None


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (1, 11, 1, 0),
        (1, 12, 2, 1),
        (1, 99, 2, 1),  # a version yet to come
        (17, 1, 1, 0),  # never flexible
        (18, 2, 1, 0),
        (18, 3, 2, 0),  # ApiVersions answers keep the oldest header
        (7, 0, 0, 0),  # ControlledShutdown v0 has no client id
        (7, 1, 1, 0),
        (7, 3, 2, 1),
    ],
)
def test_header_versions(key: int, version: int, request_header: int, response_header: int) -> None:
    assert api(key).request_header_version(version) == request_header
    assert api(key).response_header_version(version) == response_header


def test_only_brokers_may_call_what_acts_on_the_cluster() -> None:
    assert [entry.key for entry in APIS if entry.cluster_action] == [
        *(4, 5, 6, 7, 27, 56, 58, 67),
        30_001,
    ]


def test_message_modules_are_imported_when_they_are_asked_for() -> None:
    program = (
        "import sys\n"
        "from barnabas.wire.apis import api\n"
        "api(12).request\n"
        "print(*sorted(m for m in sys.modules if m.startswith('barnabas.wire.messages.')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["barnabas.wire.messages.heartbeat"]
