"""`AdminClient`: confluent-kafka's, over the functions of `barnabas.admin`.

Every call returns at once: a future, or one for each thing that it is about. The work is done on a
loop in a thread of its own, and an error is a `KafkaException` that the future raises.
"""

from __future__ import annotations

import asyncio
import warnings
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from barnabas.admin import (
    acls,
    cluster,
    configs,
    group_offsets,
    groups,
    offsets,
    reassignments,
    scram,
    topic_descriptions,
    topics,
)
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.client_id import admin_client_id
from barnabas.client.cluster_client import ClusterClient
from barnabas.compat.confluent_kafka.admin import acls as acl_values
from barnabas.compat.confluent_kafka.admin import configs as config_values
from barnabas.compat.confluent_kafka.admin import groups as group_values
from barnabas.compat.confluent_kafka.admin import offsets as offset_values
from barnabas.compat.confluent_kafka.admin import scram as scram_values
from barnabas.compat.confluent_kafka.admin import topics as topic_values
from barnabas.compat.confluent_kafka.cluster_view import ClusterMetadata, cluster_id, cluster_view
from barnabas.compat.confluent_kafka.config import merged, parse
from barnabas.compat.confluent_kafka.credentials import use_password
from barnabas.compat.confluent_kafka.events import Events, seconds
from barnabas.compat.confluent_kafka.failures import error_of, exception_of, settle
from barnabas.compat.confluent_kafka.model import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    TopicCollection,
)
from barnabas.compat.confluent_kafka.notices import Notices
from barnabas.compat.confluent_kafka.partitions import (
    OFFSET_INVALID,
    TopicPartition,
    from_commit,
    from_key,
    listed,
    to_commit,
    with_error,
)
from barnabas.config.clients.admin import AdminOptions
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.structs import OffsetAndMetadata

Key = TypeVar("Key", bound=Hashable)
Self = TypeVar("Self", bound="AdminClient")

_DEFAULT_S = 60.0


class AdminClient:
    """Administers topics, options, groups, ACLs and users."""

    def __init__(self, conf: Mapping[str, Any], **kwargs: Any) -> None:
        options, settings = parse(AdminOptions, merged((conf,), kwargs))
        self._options = options
        self._events = Events()
        self._thread = LoopThread(admin_client_id(options))

        async def open_client() -> ClusterClient:
            client = ClusterClient.from_options(options, client_id=admin_client_id(options))
            client.start()
            Notices(settings, self._events, client, lambda: {"type": "admin"})
            return client

        self._client = self._thread.call(open_client())
        self._thread.hold(self._client)
        self._end = weakref.finalize(self, _close, self._thread, self._client)

    # Topics.

    def create_topics(
        self, new_topics: list[topic_values.NewTopic], **kwargs: Any
    ) -> dict[str, Future[None]]:
        """Create topics; options are validate_only, operation_timeout and request_timeout."""
        wanted = [topic.ours for topic in _checked(new_topics, topic_values.NewTopic)]
        validate = bool(kwargs.pop("validate_only", False))
        timeout_ms = self._operation_ms(kwargs)

        async def work() -> dict[str, Any]:
            created = await topics.create_topics(
                self._client, wanted, validate_only=validate, timeout_ms=timeout_ms
            )
            return {each.name: each.error for each in created}

        return self._each([topic.topic for topic in new_topics], work, kwargs)

    def delete_topics(self, topics: list[str], **kwargs: Any) -> dict[str, Future[None]]:
        """Delete topics with all their records."""
        _checked(topics, str)
        timeout_ms = self._operation_ms(kwargs)
        return self._each(
            list(topics), lambda: _deleted(self._client, list(topics), timeout_ms), kwargs
        )

    def create_partitions(
        self, new_partitions: list[topic_values.NewPartitions], **kwargs: Any
    ) -> dict[str, Future[None]]:
        """Raise the numbers of partitions of topics."""
        checked = _checked(new_partitions, topic_values.NewPartitions)
        wanted = {each.topic: each.ours for each in checked}
        validate = bool(kwargs.pop("validate_only", False))
        timeout_ms = self._operation_ms(kwargs)

        async def work() -> dict[str, Any]:
            outcomes = await topics.create_partitions(
                self._client, wanted, validate_only=validate, timeout_ms=timeout_ms
            )
            return {each.name: each.error for each in outcomes}

        return self._each(list(wanted), work, kwargs)

    def describe_topics(
        self, topics: TopicCollection, **kwargs: Any
    ) -> dict[str, Future[topic_values.TopicDescription]]:
        """Describe topics, by name."""
        if not isinstance(topics, TopicCollection):
            raise TypeError("Expected input to be instance of TopicCollection")
        names = list(topics.topic_names)
        operations = bool(kwargs.pop("include_authorized_operations", False))

        async def work() -> dict[str, Any]:
            found = await topic_descriptions.describe_topics(
                self._client, names, authorized_operations=operations
            )
            brokers = await self._brokers()
            return {
                str(each.name): each.error or topic_values.topic_of(each, brokers) for each in found
            }

        return self._each(names, work, kwargs)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the cluster's metadata: of one topic, or all."""
        return cluster_view(self, self._client, topic, timeout)

    def delete_records(
        self, topic_partition_offsets: list[TopicPartition], **kwargs: Any
    ) -> dict[TopicPartition, Future[offset_values.DeletedRecords]]:
        """Delete the records before offsets; OFFSET_END: all of them."""
        wanted = listed(topic_partition_offsets)
        before = {each.key: each.offset for each in wanted}
        timeout_ms = self._operation_ms(kwargs)

        async def work() -> dict[TopicPartition, Any]:
            found = await offsets.delete_records(self._client, before, timeout_ms=timeout_ms)
            return {
                each: _or_failure(found[each.key], offset_values.DeletedRecords) for each in wanted
            }

        return self._each(wanted, work, kwargs)

    def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, offset_values.OffsetSpec],
        **kwargs: Any,
    ) -> dict[TopicPartition, Future[offset_values.ListOffsetsResultInfo]]:
        """Look up offsets of partitions."""
        if not isinstance(topic_partition_offsets, Mapping):
            raise TypeError("expected a dict of TopicPartition to OffsetSpec")
        for partition, spec in topic_partition_offsets.items():
            listed([partition])
            if not isinstance(spec, offset_values.OffsetSpec):
                raise TypeError("Value must be a OffsetSpec")
        level = kwargs.pop("isolation_level", IsolationLevel.READ_UNCOMMITTED)
        if not isinstance(level, IsolationLevel):
            raise TypeError("isolation_level argument should be an IsolationLevel")
        wanted = {each.key: spec.timestamp for each, spec in topic_partition_offsets.items()}

        async def work() -> dict[TopicPartition, Any]:
            found = await offsets.find_offsets(
                self._client, wanted, committed=level is IsolationLevel.READ_COMMITTED
            )
            return {
                each: _or_failure(found[each.key], offset_values.result_of)
                for each in topic_partition_offsets
            }

        return self._each(list(topic_partition_offsets), work, kwargs)

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: list[TopicPartition] | None = None,
        **kwargs: Any,
    ) -> Future[dict[TopicPartition, Any]]:
        """Elect leaders of partitions, or of all; the result has the error of each, or None."""
        if not isinstance(election_type, ElectionType):
            raise TypeError("Expected 'election_type' to be of type 'ElectionType'")
        keys = None if partitions is None else [each.key for each in listed(partitions)]
        timeout_ms = self._operation_ms(kwargs)

        async def work() -> dict[TopicPartition, Any]:
            kind = reassignments.ElectionType(election_type.value)
            found = await reassignments.elect_leaders(
                self._client, keys, kind, timeout_ms=timeout_ms
            )
            return {
                from_key(key): None if failure is None else error_of(failure)
                for key, failure in found.items()
            }

        return self._one(work, kwargs)

    # Options.

    def describe_configs(
        self, resources: list[config_values.ConfigResource], **kwargs: Any
    ) -> dict[config_values.ConfigResource, Future[dict[str, config_values.ConfigEntry]]]:
        """Return the options of resources."""
        wanted = _checked(resources, config_values.ConfigResource)

        async def work() -> dict[config_values.ConfigResource, Any]:
            asked: dict[Any, None] = {each.ours: None for each in wanted}
            found = await configs.describe_resources(self._client, asked, synonyms=True)
            return {
                each: _or_failure(found[each.ours], config_values.entries_of) for each in wanted
            }

        return self._each(wanted, work, kwargs)

    def alter_configs(
        self, resources: list[config_values.ConfigResource], **kwargs: Any
    ) -> dict[config_values.ConfigResource, Future[None]]:
        """Set exactly these options of resources: others return to their defaults."""
        warnings.warn(
            "alter_configs has been deprecated. Use incremental_alter_configs instead.",
            category=DeprecationWarning,
            stacklevel=2,
        )
        wanted = _checked(resources, config_values.ConfigResource)
        validate = bool(kwargs.pop("validate_only", False))

        async def work() -> dict[config_values.ConfigResource, Any]:
            options = {each.ours: each.set_config_dict for each in wanted}
            found = await configs.replace_resources(self._client, options, validate_only=validate)
            return {each: found[each.ours] for each in wanted}

        return self._each(wanted, work, kwargs)

    def incremental_alter_configs(
        self, resources: list[config_values.ConfigResource], **kwargs: Any
    ) -> dict[config_values.ConfigResource, Future[None]]:
        """Change options of resources; others stay as they are."""
        wanted = _checked(resources, config_values.ConfigResource, TypeError)
        changes = {each.ours: each.changes for each in wanted}
        validate = bool(kwargs.pop("validate_only", False))

        async def work() -> dict[config_values.ConfigResource, Any]:
            found = await configs.alter_resources(self._client, changes, validate_only=validate)
            return {each: found[each.ours] for each in wanted}

        return self._each(wanted, work, kwargs)

    # ACLs and users.

    def create_acls(
        self, acls: list[acl_values.AclBinding], **kwargs: Any
    ) -> dict[acl_values.AclBinding, Future[None]]:
        """Add rules."""
        wanted = _unique(_checked(acls, acl_values.AclBinding))
        return self._each(wanted, lambda: _created_acls(self._client, wanted), kwargs)

    def describe_acls(
        self, acl_binding_filter: acl_values.AclBindingFilter, **kwargs: Any
    ) -> Future[list[acl_values.AclBinding]]:
        """Return the rules that a filter matches."""
        _checked([acl_binding_filter], acl_values.AclBindingFilter, TypeError)

        async def work() -> list[acl_values.AclBinding]:
            found = await acls.describe_acls(self._client, acl_binding_filter.ours)
            return [acl_values.binding_of(each) for each in found]

        return self._one(work, kwargs)

    def delete_acls(
        self, acl_binding_filters: list[acl_values.AclBindingFilter], **kwargs: Any
    ) -> dict[acl_values.AclBindingFilter, Future[list[acl_values.AclBinding]]]:
        """Delete the rules that filters match, and return them."""
        wanted = _unique(_checked(acl_binding_filters, acl_values.AclBindingFilter))

        async def work() -> dict[acl_values.AclBindingFilter, Any]:
            done = await acls.delete_acls(self._client, [each.ours for each in wanted])
            return {
                each: outcome.error
                or [acl_values.binding_of(matched.acl) for matched in outcome.matched]
                for each, outcome in zip(wanted, done, strict=True)
            }

        return self._each(wanted, work, kwargs)

    def describe_user_scram_credentials(self, users: list[str] | None = None, **kwargs: Any) -> Any:
        """Return the credentials of users: a future for each, or (None) one for all."""

        async def work() -> dict[str, Any]:
            found = await scram.describe_user_scram_credentials(self._client, users)
            return {
                user: each
                if isinstance(each, RequestError)
                else scram_values.description_of(user, each)
                for user, each in found.items()
            }

        if users is not None:
            return self._each(list(users), work, kwargs)

        async def all_of_them() -> dict[str, Any]:
            found = await work()
            for each in found.values():
                if isinstance(each, RequestError):
                    raise each
            return found

        return self._one(all_of_them, kwargs)

    def alter_user_scram_credentials(
        self, alterations: list[scram_values.UserScramCredentialAlteration], **kwargs: Any
    ) -> dict[str, Future[None]]:
        """Set and remove credentials."""
        wanted = _checked(alterations, scram_values.UserScramCredentialAlteration, TypeError)

        async def work() -> dict[str, Any]:
            changes = [each.ours for each in wanted]
            return dict(await scram.alter_user_scram_credentials(self._client, changes))

        return self._each(list(dict.fromkeys(each.user for each in wanted)), work, kwargs)

    # Groups.

    def list_consumer_groups(self, **kwargs: Any) -> Future[group_values.ListConsumerGroupsResult]:
        """List groups; `states` and `types` are sets of those wanted."""
        states = _set_of(kwargs.pop("states", None), "states", ConsumerGroupState)
        types = _set_of(kwargs.pop("types", None), "types", ConsumerGroupType)

        async def work() -> group_values.ListConsumerGroupsResult:
            found = await groups.list_groups_of(
                self._client,
                None,
                [group_values.STATES[each] for each in states],
                [group_values.TYPES[each] for each in types],
            )
            valid = [
                group_values.listing_of(group)
                for outcome in found.values()
                if not isinstance(outcome, RequestError)
                for group in outcome
            ]
            failed = [each for each in found.values() if isinstance(each, RequestError)]
            return group_values.ListConsumerGroupsResult(
                valid, [exception_of(each) for each in failed]
            )

        return self._one(work, kwargs)

    def describe_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> dict[str, Future[group_values.ConsumerGroupDescription]]:
        """Describe groups with their members."""
        names = _names(group_ids)
        operations = bool(kwargs.pop("include_authorized_operations", False))

        async def work() -> dict[str, Any]:
            found = await groups.describe_groups(
                self._client, names, authorized_operations=operations
            )
            brokers = await self._brokers()
            return {
                name: _or_failure(each, lambda group: group_values.description_of(group, brokers))
                for name, each in found.items()
            }

        return self._each(names, work, kwargs)

    def list_groups(
        self, group: str | None = None, timeout: float = -1
    ) -> list[group_values.GroupMetadata]:
        """Return groups with their members, at once."""
        warnings.warn(
            "list_groups() is deprecated, use list_consumer_groups() and "
            "describe_consumer_groups() instead.",
            category=DeprecationWarning,
            stacklevel=2,
        )

        async def work() -> list[group_values.GroupMetadata]:
            names = [group] if group is not None else None
            if names is None:
                names = [each.name for each in await groups.list_groups(self._client)]
            found = await groups.describe_groups(self._client, names)
            brokers = await self._brokers()
            return [
                group_values.metadata_of(each, brokers)
                for each in found.values()
                if not isinstance(each, RequestError)
            ]

        found: list[group_values.GroupMetadata] = self.call(work(), seconds(timeout))
        return found

    def delete_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> dict[str, Future[None]]:
        """Delete groups without members."""
        names = _names(group_ids)
        return self._each(names, lambda: groups.delete_groups(self._client, names), kwargs)

    def list_consumer_group_offsets(
        self, list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions], **kwargs: Any
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Return the committed offsets of a group: of partitions, or (None) of all."""
        request = _one_group(list_consumer_group_offsets_request)
        stable = bool(kwargs.pop("require_stable", False))
        keys = None
        if request.topic_partitions is not None:
            keys = [each.key for each in listed(request.topic_partitions)]
            if any(each.offset != OFFSET_INVALID for each in request.topic_partitions):
                raise ValueError("Element of 'topic_partitions' must not have 'offset' value")

        async def work() -> dict[str, Any]:
            found = (
                await group_offsets.list_group_offsets(
                    self._client, {request.group_id: keys}, require_stable=stable
                )
            )[request.group_id]
            if isinstance(found, RequestError):
                return {request.group_id: found}
            partitions = [
                with_error(from_key(key), error_of(each))
                if isinstance(each, RequestError)
                else from_commit(
                    key, OffsetAndMetadata(each.offset, each.metadata, each.leader_epoch)
                )
                for key, each in found.items()
            ]
            return {request.group_id: ConsumerGroupTopicPartitions(request.group_id, partitions)}

        return self._each([request.group_id], work, kwargs)

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        **kwargs: Any,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Set the committed offsets of a group without members."""
        request = _one_group(alter_consumer_group_offsets_request)
        if request.topic_partitions is None:
            raise ValueError("'topic_partitions' cannot be null")
        wanted = listed(request.topic_partitions)
        if any(each.offset < 0 for each in wanted):
            raise ValueError("Element of 'topic_partitions' must not have negative value")

        async def work() -> dict[str, Any]:
            offsets_of = {each.key: to_commit(each) for each in wanted}
            done = await group_offsets.commit_offsets(self._client, request.group_id, offsets_of)
            partitions = []
            for each in wanted:
                failure = done[each.key]
                altered = from_commit(each.key, offsets_of[each.key])
                partitions.append(
                    with_error(altered, None if failure is None else error_of(failure))
                )
            return {request.group_id: ConsumerGroupTopicPartitions(request.group_id, partitions)}

        return self._each([request.group_id], work, kwargs)

    # The cluster, and this client itself.

    def describe_cluster(self, **kwargs: Any) -> Future[topic_values.DescribeClusterResult]:
        """Describe the cluster: brokers, controller, id."""
        operations = bool(kwargs.pop("include_authorized_operations", False))

        async def work() -> topic_values.DescribeClusterResult:
            return topic_values.cluster_of(
                await cluster.describe_cluster(self._client, authorized_operations=operations)
            )

        return self._one(work, kwargs)

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the id of the cluster."""
        return cluster_id(self, self._client, timeout)

    def poll(self, timeout: float = -1) -> int:
        """Call `error_cb` and the others that wait; futures need no poll."""
        self._events.wait(seconds(timeout))
        return self._events.serve()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on."""
        use_password(self._client, self._options, username, password)

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        exc_traceback: TracebackType | None,
    ) -> bool | None:
        self._end()
        return None

    # Futures.

    def call(self, work: Coroutine[Any, Any, Any], timeout_s: float | None) -> Any:
        """Run a coroutine on the loop, and raise KafkaException for what it raises."""
        try:
            return self._thread.call(work, None if timeout_s is None else timeout_s * 1000)
        except BarnabasError as failure:
            raise exception_of(failure) from failure

    async def _brokers(self) -> Mapping[int, Any]:
        return self._client.cluster.brokers

    def _operation_ms(self, keywords: dict[str, Any]) -> int:
        timeout_s = seconds(keywords.pop("operation_timeout", -1))
        return self._options.request_timeout_ms if timeout_s is None else int(timeout_s * 1000)

    def _one(self, work: Callable[[], Awaitable[Any]], keywords: dict[str, Any]) -> Future[Any]:
        """Return a future of some work."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        async def run() -> None:
            settle(future, await self._outcome(work, limit_s))

        limit_s = _limit_s(keywords)
        asyncio.run_coroutine_threadsafe(run(), self._thread.loop)
        return future

    def _each(
        self,
        keys: Iterable[Key],
        work: Callable[[], Awaitable[Mapping[Any, Any]]],
        keywords: dict[str, Any],
    ) -> dict[Key, Future[Any]]:
        """Return futures by key; the work returns a result or a failure for each."""
        futures: dict[Key, Future[Any]] = {}
        for key in keys:
            futures[key] = Future()
            futures[key].set_running_or_notify_cancel()

        async def run() -> None:
            outcome = await self._outcome(work, limit_s)
            for key, future in futures.items():
                settle(future, outcome if isinstance(outcome, BaseException) else outcome.get(key))

        limit_s = _limit_s(keywords)
        asyncio.run_coroutine_threadsafe(run(), self._thread.loop)
        return futures

    async def _outcome(self, work: Callable[[], Awaitable[Any]], limit_s: float) -> Any:
        """Return what some work returns, or the exception that it raises."""
        try:
            async with asyncio.timeout(limit_s):
                return await work()
        except Exception as failure:  # noqa: BLE001  # the future raises it
            return failure


async def _deleted(client: ClusterClient, names: list[str], timeout_ms: int) -> dict[str, Any]:
    outcomes = await topics.delete_topics(client, names, timeout_ms=timeout_ms)
    return {each.name: each.error for each in outcomes}


async def _created_acls(
    client: ClusterClient, wanted: list[acl_values.AclBinding]
) -> dict[acl_values.AclBinding, Any]:
    rules: list[Any] = [each.ours for each in wanted]
    outcomes = await acls.create_acls(client, rules)
    return {each: outcome.error for each, outcome in zip(wanted, outcomes, strict=True)}


def _close(thread: LoopThread, client: ClusterClient) -> None:
    if not thread.running or thread.current:
        thread.stop()
        return
    try:
        thread.call(client.close())
    finally:
        thread.stop()


def _limit_s(keywords: dict[str, Any]) -> float:
    """Return the timeout of a whole call; reject arguments that nobody knows."""
    timeout_s = seconds(keywords.pop("request_timeout", -1))
    keywords.pop("broker", None)  # the right one is asked
    if keywords:
        raise TypeError(f"{next(iter(keywords))!r} is an invalid keyword argument")
    return _DEFAULT_S if timeout_s is None else timeout_s


def _or_failure(outcome: Any, convert: Callable[[Any], Any]) -> Any:
    return outcome if isinstance(outcome, RequestError) else convert(outcome)


def _checked(given: Any, kind: type[Any], error: type[Exception] = ValueError) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError(f"expected a list of {kind.__name__}, not {type(given).__name__}")
    for each in given:
        if not isinstance(each, kind):
            raise error(f"Expected list of {kind!r}")
    if not given:
        raise ValueError(f"Expected at least one {kind.__name__}")
    return given


def _unique(given: list[Any]) -> list[Any]:
    if len(set(given)) != len(given):
        raise ValueError("duplicate ACL bindings not allowed")
    return given


def _names(given: Any) -> list[str]:
    if not isinstance(given, list):
        raise TypeError("Expected input to be list of group ids")
    if not given:
        raise ValueError("Expected at least one group")
    return given


def _set_of(given: Any, name: str, kind: type[Any]) -> set[Any]:
    if given is None:
        return set()
    if not isinstance(given, set):
        raise TypeError(f"{name!r} must be a set")
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"All elements of {name} must be of type {kind.__name__}")
    return given


def _one_group(given: Any) -> ConsumerGroupTopicPartitions:
    if given is None or not isinstance(given, list):
        raise TypeError("request must be a list")
    if len(given) != 1:
        raise ValueError("Currently we support a single consumer group only")
    (request,) = given
    if not isinstance(request, ConsumerGroupTopicPartitions):
        raise TypeError("Expected list of 'ConsumerGroupTopicPartitions'")
    if not isinstance(request.group_id, str):
        raise TypeError("'group_id' must be a string")
    if not request.group_id:
        raise ValueError("'group_id' cannot be empty")
    if request.topic_partitions is not None and not request.topic_partitions:
        raise ValueError("'topic_partitions' cannot be empty")
    return request
