"""The console's door into this broker; `barnabas.console.door` declares it."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.door.log_in import LogIn
from barnabas.broker.door.requests import RULES, Kind, Question, Rule, code_of, without_side_effects
from barnabas.broker.door.way_in import WayIn
from barnabas.broker.network.session import Session
from barnabas.client.errors import KafkaTimeoutError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import request_error
from barnabas.model.visitor import LoginRejected, Mode, Ruling, VisibleTopic, Visitor
from barnabas.security.acl.authorizer import AclAuthorizer
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.principal import ANONYMOUS, Principal, parse_principal
from barnabas.tls.channel import TlsError
from barnabas.wire.apis import api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.schema import Message, Struct

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.connection import Connection
    from barnabas.wire.apis import Api

logger = logging.getLogger("barnabas.console")

CLIENT_ID = "barnabas-console"
LISTENER = "console"
"""Where the audit log says that a request came from."""
CERTIFICATE = "TLS"
"""How browsers log in by certificates, in the audit log."""
IN_PROGRESS_MAX = 64
"""Requests of all users at a time; the others wait."""
FETCH_WAIT_MS_MAX = 100
"""How long a fetch from another broker may wait for records: others wait behind it."""
SLICE = 500
"""Topics or partitions that are looked at before the loop may run again."""
SUBJECTS_MAX = 5

ALLOWED_KINDS = {
    Mode.FULL: frozenset(Kind),
    Mode.READ_ONLY: frozenset({Kind.METADATA, Kind.RECORDS}),
    Mode.METADATA_ONLY: frozenset({Kind.METADATA}),
}


class BrokerDoor:
    """Requests of the console's users, handled as any client's."""

    def __init__(
        self,
        broker: Broker,
        mode: Mode,
        principal_of: Callable[[bytes], Principal] | None = None,
    ) -> None:
        """Let the requests of a mode through.

        `principal_of` returns whom a browser's certificate names, or raises TlsError.
        """
        self._broker = broker
        self._mode = mode
        self._principal_of = principal_of
        self._peers = broker.peers.apart(CLIENT_ID)
        self._fetching = broker.peers.apart(CLIENT_ID)
        self._room = asyncio.Semaphore(IN_PROGRESS_MAX)
        self._throttled: dict[str, int] = {}
        """Until when users wait who have exceeded a quota, by the timer's clock."""
        self._correlation_id = 0
        self._names: tuple[int, list[str]] = (-1, [])
        """The names of all topics in order, and the version of the set that they are of."""
        self._log_in = LogIn(
            lambda: broker.sasl.by_password,
            broker.now_ms,
            lambda: broker.options.connection_failed_authentication_delay_ms,
            broker.audit,
            broker.metrics,
        )

    # what the console asks at once

    @property
    def broker_id(self) -> int:
        """The id of this broker."""
        return self._broker.broker_id

    @property
    def mode(self) -> Mode:
        """What the console may do."""
        return self._mode

    @property
    def secured(self) -> bool:
        """Whether there is an authorizer."""
        return self._broker.has_acls

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms by which one can log in."""
        return tuple(self._broker.sasl.by_password)

    def anonymous(self, host: str) -> Visitor:
        """Return the visitor of a console without log-in."""
        return Visitor(str(ANONYMOUS), host)

    async def log_in(self, name: str, password: str, host: str) -> Visitor:
        """Check a name and a password."""
        login = await self._log_in.check(name, password, host)
        return Visitor(f"User:{login.name}", host, login.by_token)

    def by_certificate(self, der: bytes, host: str) -> Visitor:
        """Return whom a browser's certificate names."""
        audit = self._broker.audit
        try:
            if self._principal_of is None:
                raise TlsError("the console is not served over TLS")
            principal = str(self._principal_of(der))
        except TlsError as failure:
            audit.failed_login(host, LISTENER, CERTIFICATE, str(failure), again=False)
            raise LoginRejected(f"Your certificate is not accepted: {failure}.") from failure
        audit.login(principal, host, LISTENER, CERTIFICATE, again=False)
        return Visitor(principal, host)

    # requests

    async def ask(
        self,
        visitor: Visitor,
        request: Message,
        *,
        to: int | None = None,
        version: int | None = None,
        timeout_ms: float = 30_000,
    ) -> Any:
        """Return the response of this broker, or of another one."""
        api = api_of(type(request))
        rule = RULES.get(api.name)
        if rule is None:
            raise request_error(
                ErrorCode.POLICY_VIOLATION, f"the console does not send {api.name} requests"
            )
        if rule.kind not in ALLOWED_KINDS[self._mode]:
            raise request_error(
                ErrorCode.POLICY_VIOLATION,
                f"{api.name} {rule.kind.value}: "
                f"barnabas.console.mode={self._mode.value} forbids it",
            )
        if version is None:
            version = api.stable_versions.last
        session = self._session(visitor, api.key)
        without_side_effects(request)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._wait_for_quota(visitor.principal)
                async with self._room:
                    if to is None or to == self._broker.broker_id or rule.questions is None:
                        response = await self._ask_here(session, api, request, version)
                    else:
                        response = await self._ask_there(
                            session, api, rule, request, version, to, int(timeout_ms)
                        )
        except TimeoutError:
            raise KafkaTimeoutError(
                f"{api.name} was not answered within {timeout_ms:g} ms"
            ) from None
        if rule.kind is Kind.CHANGE:
            self._audit(session, api, rule, request, response, to)
        return response

    async def _ask_here(
        self, session: Session, api: Api, request: Message, version: int
    ) -> Message:
        """Let this broker's router handle a request."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        # A handler may write into the records of a Produce request.
        frame = memoryview(
            bytearray(request_frame(request, version, self._correlation_id, CLIENT_ID))
        )
        way = WayIn(session)
        try:
            self._broker.parts.network.of_clients.dispatch(cast("Connection", way), frame[4:])
            answer = await way.answered
        finally:
            way.leave()
            if way.throttled_until_ms is not None:
                self._throttled[str(session.principal)] = way.throttled_until_ms
        return decode_response(api, version, memoryview(answer)[4:])[1]

    async def _ask_there(
        self,
        session: Session,
        api: Api,
        rule: Rule,
        request: Message,
        version: int,
        broker_id: int,
        timeout_ms: int,
    ) -> Message:
        """Ask another broker, after the authorizer of this one."""
        broker = self._broker
        for question in self._questions(rule, request):
            if not self._allows(session, question):
                what = " or ".join(each[0].name for each in question.any_of)
                raise request_error(
                    code_of(question),
                    f"{session.principal} has no {what} permission on "
                    f"{question.any_of[-1][1].name.lower()} {question.name!r}",
                )
        peers = self._peers
        if isinstance(request, FetchRequest):
            peers = self._fetching
            request.max_wait_ms = min(request.max_wait_ms, FETCH_WAIT_MS_MAX)
        response: Message = await peers.ask(broker_id, request, timeout_ms, version=version)
        if rule.narrow is not None:
            rule.narrow(
                response,
                lambda operation, resource, name: broker.sees(session, operation, resource, name),
            )
        return response

    def _questions(self, rule: Rule, request: Message) -> Iterator[Question]:
        if rule.questions is not None:
            yield from dict.fromkeys(rule.questions(request, self._broker.topic_name))

    def _allows(self, session: Session, question: Question) -> bool:
        # All but the last are only alternatives, so a denial of them is not in the audit log.
        *others, (operation, resource) = question.any_of
        broker = self._broker
        return any(
            broker.sees(session, each, kind, _name_for(kind, question.name))
            for each, kind in others
        ) or broker.allows(session, operation, resource, question.name)

    async def _wait_for_quota(self, principal: str) -> None:
        until_ms = self._throttled.get(principal)
        if until_ms is not None:
            rest_ms = until_ms - self._broker.timer.now_ms()
            if rest_ms > 0:
                await asyncio.sleep(rest_ms / 1000)
            self._throttled.pop(principal, None)

    def _session(self, visitor: Visitor, api_key: int) -> Session:
        """Return what handlers see of the user; of its own, for requests run together."""
        listeners = self._broker.parts.network.listeners
        names = [each.name for each in listeners.bind if each.name != listeners.control_plane]
        session = Session(
            listeners.inter_broker if listeners.inter_broker in names else names[0],
            visitor.host,
            "localhost",
            parse_principal(visitor.principal),
            by_token=visitor.by_token,
        )
        session.api_key = api_key
        session.software_name = CLIENT_ID
        return session

    def _audit(
        self,
        session: Session,
        api: Api,
        rule: Rule,
        request: Message,
        response: Message,
        to: int | None,
    ) -> None:
        """Record a change that was made, or tried, by the console."""
        names = [question.name for question in self._questions(rule, request)]
        subjects = ", ".join(names[:SUBJECTS_MAX])
        if len(names) > SUBJECTS_MAX:
            subjects += f" and {len(names) - SUBJECTS_MAX} more"
        code = next(_codes_in(response), 0)
        self._broker.audit.event(
            "console",
            str(session.principal),
            session.client_host,
            LISTENER,
            client_id=CLIENT_ID,
            api=api.name,
            resource=subjects,
            broker=str(self._broker.broker_id if to is None else to),
            result=ErrorCode.of(code).name,
        )

    # what is not a request

    def describes_cluster(self, visitor: Visitor) -> bool:
        """Return whether a visitor may describe the cluster."""
        session = self._session(visitor, -1)
        return self._broker.sees(session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    async def _sorted_names(self) -> list[str]:
        """Return the names of all topics in order; the list is kept until there are others."""
        cluster = self._broker.cluster
        version, names = self._names
        if version != cluster.names_version:
            version, names = cluster.names_version, list(cluster.topic_names)
            if len(names) > 10 * SLICE:  # sorting takes some time
                names = await asyncio.get_running_loop().run_in_executor(None, sorted, names)
            else:
                names.sort()
            self._names = version, names
        return names

    async def topics(
        self, visitor: Visitor, *, after: str = "", containing: str = ""
    ) -> AsyncIterator[VisibleTopic]:
        """Yield the topics that a visitor may describe, by name."""
        broker, cluster = self._broker, self._broker.cluster
        session = self._session(visitor, -1)
        names = await self._sorted_names()
        part = containing.lower()
        internal = {broker.groups.topic, broker.transactions.topic}
        looked_at = 0
        for at in range(bisect_right(names, after) if after else 0, len(names)):
            name = names[at]
            looked_at += 1
            if looked_at >= SLICE:
                looked_at = 0
                await asyncio.sleep(0)
            if part and part not in name.lower():
                continue
            view = cluster.topic(name)
            if view is None or not broker.sees(
                session, Operation.DESCRIBE, ResourceType.TOPIC, name
            ):
                continue
            partitions = view.partitions
            looked_at += len(partitions)
            yield VisibleTopic(
                name,
                view.topic_id,
                len(partitions),
                len(partitions[0].replicas) if partitions else 0,
                name in internal,
                sum(1 for each in partitions if len(each.isr) < len(each.replicas)),
                sum(1 for each in partitions if each.leader < 0),
                sum(
                    1
                    for each in partitions
                    if each.leader >= 0 and each.replicas and each.leader != each.replicas[0]
                ),
            )

    def ruling(
        self, visitor: Visitor, principal: str, host: str, operation: int, resource: int, name: str
    ) -> Ruling:
        """Return what the authorizer would decide about a principal."""
        broker = self._broker
        broker.check_cluster(self._session(visitor, -1), Operation.DESCRIBE)
        who = parse_principal(principal)
        asked = who, host, Operation(operation), ResourceType(resource), name
        if not isinstance(broker.authorizer, AclAuthorizer):
            return Ruling(
                broker.authorizer.allows(*asked),
                "no authorizer is configured (authorizer.class.name)",
            )
        decision = broker.authorizer.explain(*asked)
        return Ruling(decision.allowed, str(decision.rule or decision.reason))

    def close(self) -> None:
        """Close the connections to other brokers."""
        self._peers.close()
        self._fetching.close()


def _name_for(resource: ResourceType, name: str) -> str:
    return CLUSTER_NAME if resource is ResourceType.CLUSTER else name


def _codes_in(value: object) -> Iterator[int]:
    """Yield the error codes other than 0 anywhere in a response."""
    if isinstance(value, Struct):
        for field in value.FIELDS:
            found = getattr(value, field.name, None)
            if field.name == "error_code":
                if found:
                    yield int(found)
            else:
                yield from _codes_in(found)
    elif isinstance(value, list):
        for element in value:
            yield from _codes_in(element)
