"""What can be done to a group: reset its offsets, undo that, remove members, delete it."""

from __future__ import annotations

import shlex
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.group_offsets import commit_offsets, delete_group_offsets
from barnabas.admin.groups import (
    GroupMember,
    MemberToRemove,
    delete_groups,
    describe_group,
    remove_members,
)
from barnabas.admin.topic_descriptions import describe_topics
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.pages.groups import committed_of
from barnabas.console.reset import plan_reset
from barnabas.console.segments import segment
from barnabas.console.undo import Undo
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

REASON = "removed by the console"


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def reset(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        principal = context.session(request).visitor.principal
        base = f"/groups/{segment(name)}"
        if form.get("confirmed") == "yes":
            # What was shown is done, not what the goal would mean by now.
            offsets = {}
            for text in form.all("move"):
                topic, partition, offset = _three(text)
                offsets[TopicPartition(topic, partition)] = offset
            before = await committed_of(client, name)
            outcomes = await commit_offsets(client, name, offsets)
            done = [each for each, failed in outcomes.items() if failed is None]
            if done:
                undo = Undo(now_ms(), {each: before.get(each) for each in done})
                context.undos.keep(principal, name, undo)
            results = [(str(partition), failed) for partition, failed in outcomes.items()]
            return report(context, request, f"Offsets of {name}", results, base, done="reset")
        topic, goal = form.get("topic"), form.get("to")
        committed = {
            partition: each.offset
            for partition, each in (await committed_of(client, name)).items()
            if not topic or partition.topic == topic
        }
        wanted = list(committed)
        if topic:
            [described] = await describe_topics(client, [topic])
            if described.error is not None:
                raise described.error
            wanted = [TopicPartition(topic, each.index) for each in described.partitions]
        moves = await plan_reset(client, wanted, committed, goal)
        flag = f"--topic {shlex.quote(topic)}" if topic else "--all-topics"
        plan = Plan(
            title=f"Reset offsets of {name}",
            text="The group must have no members, or the broker rejects this. Until this "
            "broker restarts you can undo it on the page of the group.",
            button="Reset them",
            action=f"{base}/reset",
            back=base,
            fields=[
                ("move", f"{each.partition.topic}:{each.partition.partition}:{each.target}")
                for each in moves
            ],
            heads=["Topic", "Partition", "Committed now", "Then", "So it"],
            rows=[
                [
                    each.partition.topic,
                    each.partition.partition,
                    "–" if each.committed is None else each.committed,
                    each.target,
                    each.effect,
                ]
                for each in moves
            ],
            needs=f"READ on group {name} and on the topics",
            command=f"barnabas groups reset-offsets {shlex.quote(name)} {flag} "
            f"--to={shlex.quote(goal)} --execute",
        )
        return ask(context, request, plan)

    async def undo(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        principal = context.session(request).visitor.principal
        base = f"/groups/{segment(name)}"
        kept = context.undos.of(principal, name)
        if kept is None:
            raise HTTPException(404, f"You have not reset {name} since this broker was started.")
        if form.get("confirmed") == "yes":
            back = {
                each: OffsetAndMetadata(was.offset, was.metadata, was.leader_epoch)
                for each, was in kept.before.items()
                if was is not None
            }
            gone = [each for each, was in kept.before.items() if was is None]
            outcomes = await commit_offsets(client, name, back) if back else {}
            if gone:
                outcomes |= await delete_group_offsets(client, name, gone)
            if not any(outcomes.values()):
                context.undos.drop(principal, name)
            results = [(str(partition), failed) for partition, failed in outcomes.items()]
            return report(context, request, f"Offsets of {name}", results, base, done="as before")
        now = await committed_of(client, name)
        plan = Plan(
            title=f"Undo the reset of {name}",
            text="What was committed before is committed again, whatever the group has read since. "
            "The group must have no members.",
            button="Undo it",
            action=f"{base}/undo",
            back=base,
            heads=["Topic", "Partition", "Committed now", "Then"],
            rows=[
                [
                    each.topic,
                    each.partition,
                    now[each].offset if each in now else "–",
                    "nothing" if was is None else was.offset,
                ]
                for each, was in sorted(kept.before.items())
            ],
            needs=f"READ on group {name} and on the topics, DELETE where nothing was committed",
        )
        return ask(context, request, plan)

    async def delete(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        if form.get("confirmed") == "yes":
            [(_, failed)] = (await delete_groups(client, [name])).items()
            if failed is not None:
                raise failed
            return report(
                context, request, "Deleted", [(f"Group {name}", None)], "/groups", done="deleted"
            )
        committed = await committed_of(client, name)
        plan = Plan(
            title=f"Delete {name}",
            text="The group and all its committed offsets are deleted. A member that comes back "
            "begins where its auto.offset.reset says.",
            button="Delete it",
            action=f"/groups/{segment(name)}/delete",
            back=f"/groups/{segment(name)}",
            heads=["Topic", "Partition", "Committed"],
            rows=[[each.topic, each.partition, at.offset] for each, at in committed.items()],
            needs=f"DELETE on group {name}",
            command=f"barnabas groups delete {shlex.quote(name)}",
        )
        return ask(context, request, plan)

    async def remove(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        base = f"/groups/{segment(name)}"
        chosen = form.all("member")
        if form.get("confirmed") == "yes":
            outcomes = await remove_members(client, name, [_member(each) for each in chosen])
            results = [
                (f"Member {each.group_instance_id or each.member_id}", failed)
                for each, failed in outcomes.items()
            ]
            return report(context, request, f"Members of {name}", results, base, done="removed")
        found = await describe_group(client, name)
        members = {_member_text(each): each for each in found.members}
        wanted = {text: each for text, each in members.items() if not chosen or text in chosen}
        if not wanted:
            raise HTTPException(404, f"Group {name} has no such member.")
        plan = Plan(
            title=f"Remove members of {name}",
            text="The others get their partitions. A member that still runs joins again at once, "
            "unless it is static: so this is for members that are gone and hold partitions.",
            button="Remove them",
            action=f"{base}/remove",
            back=base,
            fields=[("member", text) for text in wanted],
            heads=["Client", "Host", "Member", "Partitions"],
            rows=[
                [
                    each.client_id,
                    each.host,
                    each.instance_id or each.member_id,
                    "not readable" if each.partitions is None else len(each.partitions),
                ]
                for each in wanted.values()
            ],
            needs=f"READ on group {name}",
        )
        return ask(context, request, plan)

    async def forget(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        base = f"/groups/{segment(name)}"
        topic = form.get("topic").strip()
        committed = {
            partition: each
            for partition, each in (await committed_of(client, name)).items()
            if partition.topic == topic
        }
        if not committed:
            raise HTTPException(404, f"Group {name} has committed nothing in topic {topic!r}.")
        if form.get("confirmed") == "yes":
            outcomes = await delete_group_offsets(client, name, list(committed))
            done = [each for each, failed in outcomes.items() if failed is None]
            if done:
                undo = Undo(now_ms(), {each: committed[each] for each in done})
                principal = context.session(request).visitor.principal
                context.undos.keep(principal, name, undo)
            results = [(str(partition), failed) for partition, failed in outcomes.items()]
            return report(context, request, f"Offsets of {name}", results, base, done="deleted")
        plan = Plan(
            title=f"Delete offsets of {name} in {topic}",
            text="A member that reads these partitions again begins where its auto.offset.reset "
            "says. The broker rejects this while members are subscribed to the topic. Until this "
            "broker restarts you can undo it on the page of the group.",
            button="Delete them",
            action=f"{base}/forget",
            back=base,
            fields=[("topic", topic)],
            heads=["Topic", "Partition", "Committed"],
            rows=[[each.topic, each.partition, at.offset] for each, at in committed.items()],
            needs=f"DELETE on group {name}, READ on topic {topic}",
        )
        return ask(context, request, plan)

    one = "/groups/{group:segment}"
    return [
        Route(f"{one}/remove", remove, methods=["POST"]),
        Route(f"{one}/forget", forget, methods=["POST"]),
        Route(f"{one}/reset", reset, methods=["POST"]),
        Route(f"{one}/undo", undo, methods=["POST"]),
        Route(f"{one}/delete", delete, methods=["POST"]),
    ]


def now_ms() -> int:
    """Return the time by the wall clock."""
    return time.time_ns() // 1_000_000


def _member_text(member: GroupMember) -> str:
    """Return a member as a form carries it."""
    if member.instance_id:
        return f"instance {member.instance_id}"
    return f"member {member.member_id}"


def _member(text: str) -> MemberToRemove:
    kind, _, name = text.partition(" ")
    if kind not in ("instance", "member") or not name:
        raise HTTPException(400, f"{text[:40]!r} is not a member.")
    if kind == "instance":
        return MemberToRemove(group_instance_id=name, reason=REASON)
    return MemberToRemove(member_id=name, reason=REASON)


def _three(text: str) -> tuple[str, int, int]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not partition.isdecimal() or not offset.isdecimal():
        raise HTTPException(400, f"{text!r} is not TOPIC:PARTITION:OFFSET.")
    return topic, int(partition), int(offset)
