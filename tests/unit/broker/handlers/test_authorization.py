"""Every served API, in every version, asks the authorizer as the table says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.authorization import CLIENT, REQUESTS, Rehearsal, cases
from tests.unit.broker.coordinated import COORDINATED
from tests.unit.broker.principals import authenticate
from tests.unit.broker.serving import Serving, WatchedBroker, Wire

from barnabas.broker.handlers import served_apis
from barnabas.broker.handlers.authorization import AUTHORIZATION, Case
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.security.acl import Binding
from barnabas.security.principal import ANONYMOUS, parse_principal
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.schema import Message


class Member(Serving):
    """A broker of a cluster, which serves the requests of other brokers, too."""

    def _make(self, options: Mapping[str, str]) -> WatchedBroker:
        self.broker = WatchedBroker(
            BrokerOptions.parse(dict(options)), coordination=MemoryCoordination(MemoryStore())
        )
        self.broker.lines = self.lines
        return self.broker


class Secured:
    """Our broker with an authorizer; the client's principal is set on its connection."""

    def __init__(self, serving: Serving, admin: Wire, client: Wire) -> None:
        self.serving = serving
        self.broker_id = 0
        self._admin = admin
        self._client = client

    def versions(self, api: str) -> range:
        (served,) = (each for each in self.serving.broker.served.values() if each.api.name == api)
        return range(served.first_version, served.last_version + 1)

    def ask(self, request: Message, version: int, *, admin: bool = False) -> Any:
        return (self._admin if admin else self._client).ask(request, version)

    def set_acls(self, bindings: list[Binding]) -> None:
        everything = DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        (removed,) = self.ask(DeleteAclsRequest(filters=[everything]), 3, admin=True).filter_results
        assert removed.error_code == 0, removed
        creations = [
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in bindings
        ]
        for result in self.ask(CreateAclsRequest(creations=creations), 3, admin=True).results:
            assert result.error_code == 0, result


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    options = {
        **COORDINATED,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": str(ANONYMOUS),
        "auto.create.topics.enable": "true",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    with (
        Member(tmp_path_factory.mktemp("secured"), options) as serving,
        serving.connect() as admin,
        serving.connect() as client,
    ):
        authenticate(serving, client, parse_principal(CLIENT))
        yield Secured(serving, admin, client)


def test_every_served_api_has_a_row() -> None:
    """A new handler needs a row in the table, and a request of each of its cases here."""
    assert {served.api.name for served in served_apis(alone=False).values()} == set(AUTHORIZATION)
    assert {(api, case.name) for api, case in cases()} == set(REQUESTS)


@pytest.mark.parametrize("api", AUTHORIZATION)
def test_the_cases_of_an_api_cover_all_versions(api: str) -> None:
    """Every version of an API that needs something has a case."""
    (served,) = (each for each in served_apis(alone=False).values() if each.api.name == api)
    listed = AUTHORIZATION[api]
    for version in range(served.first_version, served.last_version + 1):
        assert not listed or any(case.covers(version) for case in listed), version


@pytest.mark.parametrize(
    ("api", "case"), cases(), ids=lambda part: part.name if isinstance(part, Case) else part
)
def test_what_is_asked_and_answered(secured: Secured, api: str, case: Case) -> None:
    """Denied, allowed, wildcard, prefix, DENY, super user: as the table says, in all versions."""
    rehearsal = Rehearsal(secured, api, case)
    versions = [version for version in secured.versions(api) if case.covers(version)]
    assert versions
    for version in versions:
        rehearsal.run(version)
    secured.serving.expect_no_lines()
