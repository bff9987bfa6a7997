"""Every API that is served, in every version: it answers, and it can refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.requests import has_sample, sample_request
from tests.unit.broker.serving import Serving, Wire, create_topic, fetch

from barnabas.broker.handlers import served_apis
from barnabas.broker.network.router import Served
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.codec import decode, encode

SERVED = list(served_apis().values())


def versions(served: Served) -> range:
    return range(served.first_version, served.last_version + 1)


def error_codes(message: Any) -> list[int]:
    """Return every error code anywhere in a message."""
    found = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name == "error_code":
            found.append(value)
        elif field.struct is not None and value is not None:
            for each in value if field.is_array else [value]:
                found += error_codes(each)
    return found


@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.api.name)
def test_default_requests_are_answered_in_every_version(
    served: Served, serving: Serving, wire: Wire
) -> None:
    """A request of nothing but defaults gets an answer that our own codec reads."""
    for version in versions(served):
        request: Any = served.api.request()
        if served.api.name == "Produce":
            request.acks = 1
        response = wire.ask(request, version)
        assert isinstance(response, served.api.response)
    serving.expect_no_lines()


@pytest.mark.parametrize(
    "served",
    [served for served in SERVED if has_sample(served.api.name)],
    ids=lambda served: served.api.name,
)
def test_requests_about_a_topic_succeed_in_every_version(
    served: Served, serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    """A sensible request about a topic that exists succeeds, whatever the version."""
    for version in versions(served):
        name = new_name()
        topic_id = create_topic(wire, name, 2)
        response = wire.ask(sample_request(served.api.name, version, name, topic_id), version)
        expected = {
            "SaslHandshake": {ErrorCode.ILLEGAL_SASL_STATE},
            "ElectLeaders": {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED},
        }.get(served.api.name, {ErrorCode.NONE})
        assert set(error_codes(response)) <= expected, (version, response)
    serving.expect_no_lines()


@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.api.name)
def test_refusals_can_be_written_in_every_version(served: Served) -> None:
    """Whatever fails, the answer that says so fits the version, and names the error."""
    for version in versions(served):
        body = sample_request(served.api.name, version, "t", b"i" * 16)
        refusal = served.refuse(body, ErrorCode.UNKNOWN_SERVER_ERROR, "the reason")
        answer: Any
        answer, _ = decode(served.api.response, encode(refusal, version), version)
        if served.api.name == "DescribeLogDirs" and version < 3:
            assert answer.results == []
        elif has_sample(served.api.name):
            assert ErrorCode.UNKNOWN_SERVER_ERROR in error_codes(answer), (version, answer)


class DenyAll:
    """The authorizer of a cluster that is closed to everyone."""

    def allows(self, *_: object) -> bool:
        return False

    def allows_any(self, *_: object) -> bool:
        return False


@pytest.mark.parametrize(
    "served",
    [served for served in SERVED if has_sample(served.api.name)],
    ids=lambda served: served.api.name,
)
def test_every_api_asks_the_authorizer(
    served: Served, serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    """Where nothing is allowed nothing is done, and the answer says that it is not allowed."""
    if served.api.name in ("ApiVersions", "SaslHandshake"):
        return  # open to everyone: they come before a client can be known
    topic_id = create_topic(wire, name := new_name(), 2)
    topics_before = set(serving.broker.cluster.topic_names)
    allowing = serving.broker.authorizer
    serving.broker.authorizer = DenyAll()
    try:
        for version in versions(served):
            response = wire.ask(sample_request(served.api.name, version, name, topic_id), version)
            codes = set(error_codes(response))
            if served.api.name == "DescribeCluster":
                continue  # where the brokers are is told to everyone
            if served.api.name == "DescribeLogDirs" and version < 3:
                assert response.results == []
                continue
            codes.discard(ErrorCode.NONE)  # of the answer as a whole
            if served.api.name == "FindCoordinator":
                assert codes == {ErrorCode.GROUP_AUTHORIZATION_FAILED}, (version, response)
                continue
            assert codes <= {
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            }, (version, response)
            assert codes, (version, response)
    finally:
        serving.broker.authorizer = allowing
    assert set(serving.broker.cluster.topic_names) == topics_before
    assert fetch(wire, name).high_watermark == 0
