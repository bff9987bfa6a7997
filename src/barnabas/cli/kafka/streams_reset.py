"""The work of `kafka-streams-application-reset`."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Mapping

from barnabas.admin.group_offsets import commit_offsets, group_offsets
from barnabas.admin.groups import describe_group, remove_members
from barnabas.admin.offsets import list_offsets
from barnabas.admin.topics import delete_topics, describe_topics
from barnabas.cli import session
from barnabas.cli.kafka.flags import Given
from barnabas.cli.kafka.offset_scenarios import moment_ms, offsets_since
from barnabas.cli.offset_reset import bounds
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.model.ids import LATEST, TopicPartition

INTERNAL = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic",
    re.ASCII,
)
"""Names that Streams gives to its topics, after the application's id."""

Offsets = dict[TopicPartition, int]


class StillActive(BarnabasError):
    """A group that has members."""


def reset(given: Given, config: str) -> int:
    """Connect, and do all of it."""
    plan = _read_plan(given["from-file"]) if "from-file" in given else {}
    moment = moment_ms(given)
    return session.run(given.connection(config), _Reset(given, plan, moment).run)


def _split(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in text.split(",") if name]


def _shown(names: Iterable[str]) -> str:
    """Return a list as Kafka's tool prints it."""
    return f"[{', '.join(names)}]"


class _Reset:
    """One run of the tool."""

    def __init__(self, given: Given, plan: Mapping[TopicPartition, int], moment: int | None):
        self._given = given
        self._plan = plan
        self._moment = moment
        self._group: str = given["application-id"]
        self._input = _split(given["input-topics"])
        self._intermediate = _split(given["intermediate-topics"])
        self._dry = "dry-run" in given

    async def run(self, client: ClusterClient) -> int:
        await self._remove_members(client)
        views = await describe_topics(client, None)
        partitions = {view.name: sorted(view.partitions) for view in views}
        if self._dry:
            print(
                "----Dry run displays the actions which will be performed when running Streams "
                "Reset Tool----"
            )
        code = await self._reset_offsets(client, partitions)
        await self._delete_internal(client, list(partitions))
        return code

    async def _remove_members(self, client: ClusterClient) -> None:
        try:
            members = (await describe_group(client, self._group)).members
        except RequestError as failure:
            if failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return
            raise
        if not members:
            return
        if "force" not in self._given:
            names = _shown(member.member_id for member in members)
            raise StillActive(
                f"Consumer group '{self._group}' is still active and has following members: "
                f"{names}. Make sure to stop all running application instances before running the "
                "reset tool. You can use option '--force' to remove active members from the group."
            )
        print(f"Force deleting all active members in the group: {self._group}")
        for kept in (await remove_members(client, self._group)).values():
            if kept is not None and kept.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                raise kept

    # -- offsets

    async def _reset_offsets(
        self, client: ClusterClient, partitions: Mapping[str, list[int]]
    ) -> int:
        if not self._input and not self._intermediate:
            print("No input or intermediate topics specified. Skipping seek.")
            return 0
        if self._input:
            print(f"Reset-offsets for input topics {_shown(self._input)}")
        if self._intermediate:
            print(f"Seek-to-end for intermediate topics {_shown(self._intermediate)}")
        code = _say_missing("input", "Topic: ", self._input, partitions)
        code |= _say_missing("intermediate", "Topic:", self._intermediate, partitions)
        to_reset = _partitions_of(self._input, partitions)
        to_end = _partitions_of(self._intermediate, partitions)
        if not to_reset and not to_end:
            return code
        offsets = await self._wanted(client, to_reset) if to_reset else {}
        for key in to_reset:
            print(f"Topic: {key.topic} Partition: {key.partition} Offset: {offsets[key]}")
        if to_end:
            print(
                "Following intermediate topics offsets will be reset to end (for consumer group "
                f"{self._group})"
            )
            for key in to_end:
                print(f"Topic: {key.topic}")
            found = await list_offsets(client, dict.fromkeys(to_end, LATEST))
            offsets |= {key: found[key].offset for key in to_end}
        if not self._dry:
            for failure in (await commit_offsets(client, self._group, offsets)).values():
                if failure is not None:
                    raise failure
        print("Done.")
        return code

    async def _wanted(self, client: ClusterClient, partitions: list[TopicPartition]) -> Offsets:
        print(f"Following input topics offsets will be reset to (for consumer group {self._group})")
        if self._moment is not None:
            return await offsets_since(client, partitions, self._moment, _say_empty)
        starts, ends = await bounds(client, partitions)
        given = self._given
        if "to-latest" in given:
            return ends
        if "to-offset" in given:
            wanted = dict.fromkeys(partitions, given["to-offset"])
        elif "shift-by" in given:
            committed = await group_offsets(client, self._group)
            wanted = {
                key: (committed[key].offset if key in committed else ends[key]) + given["shift-by"]
                for key in partitions
            }
        elif "from-file" in given:
            missing = [key for key in partitions if key not in self._plan]
            if missing:
                raise InvalidValueError(f"{given['from-file']}: no offset for {missing[0]}")
            wanted = {key: self._plan[key] for key in partitions}
        else:
            return starts
        return {key: _within(wanted[key], starts[key], ends[key]) for key in partitions}

    # -- internal topics

    async def _delete_internal(self, client: ClusterClient, topics: list[str]) -> None:
        inferred = [topic for topic in topics if self._is_internal(topic)]
        specified = _split(self._given["internal-topics"])
        if not set(specified) <= set(inferred):
            raise InvalidValueError(
                "Invalid topic specified in the --internal-topics option. Ensure that the topics "
                "specified are all internal topics. Do a dry run without the --internal-topics "
                "option to see the list of all internal topics that can be deleted."
            )
        which = "specified" if specified else "inferred"
        print(f"Deleting {which} internal topics {_shown(specified or inferred)}")
        if not self._dry:
            outcomes = await delete_topics(client, specified or inferred)
            failed = [outcome for outcome in outcomes if outcome.error is not None]
            for outcome in failed:
                print(f"ERROR: deleting topic {outcome.name}: {outcome.error}", file=sys.stderr)
            if failed:
                raise InvalidValueError("Encountered an error deleting one or more topics")
        print("Done.")

    def _is_internal(self, topic: str) -> bool:
        return (
            topic.startswith(f"{self._group}-")
            and INTERNAL.fullmatch(topic) is not None
            and topic not in self._input
            and topic not in self._intermediate
        )


def _say_missing(kind: str, prefix: str, topics: list[str], there: Iterable[str]) -> int:
    missing = [topic for topic in topics if topic not in there]
    if missing:
        print(f"Following {kind} topics are not found, skipping them")
        for topic in missing:
            print(f"{prefix}{topic}")
    return 1 if missing else 0


def _partitions_of(topics: list[str], there: Mapping[str, list[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in there.get(topic, ())]


def _within(offset: int, start: int, end: int) -> int:
    """Return an offset inside the log; the bounds themselves are said to be outside, too."""
    if offset >= end:
        print(f"New offset ({offset}) is higher than latest offset. Value will be set to {end}")
        return end
    if offset <= start:
        print(f"New offset ({offset}) is lower than earliest offset. Value will be set to {start}")
        return start
    return offset


def _say_empty(key: TopicPartition) -> None:
    print(
        f"Partition {key.partition} from topic {key.topic} is empty, without a committed record. "
        "Falling back to latest known offset."
    )


def _read_plan(path: str) -> Offsets:
    offsets: Offsets = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            try:
                topic, number, offset = row
                offsets[TopicPartition(topic, int(number))] = int(offset)
            except ValueError as failure:
                raise InvalidValueError(
                    f"{path}: Reset plan CSV file is not following the format "
                    "`TOPIC,PARTITION,OFFSET`."
                ) from failure
    if not offsets:
        raise InvalidValueError(f"{path}: Error parsing reset plan CSV file. It is empty,")
    return offsets
