"""What can be done to a topic: options, partitions, old records, leaders, a fork, deletion."""

from __future__ import annotations

import shlex

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.admin.config_entries import AlterConfigOp, Change
from barnabas.admin.configs import alter_configs, describe_configs
from barnabas.admin.offsets import HIGH_WATERMARK, delete_records
from barnabas.admin.reassignments import elect_leaders
from barnabas.admin.topics import (
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.pages.topic import (
    described,
    offsets_of,
    partitions_of,
    resource_of,
    state_of,
)
from barnabas.console.pages.topics import whole
from barnabas.console.segments import segment
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

FORK_SOURCE, FORK_AT = "barnabas.fork.source", "barnabas.fork.at"


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def alter(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        option, value = form.get("option").strip(), form.get("value")
        delete = form.get("operation") == "delete"
        change = Change(
            AlterConfigOp.DELETE if delete else AlterConfigOp.SET, option, None if delete else value
        )
        if form.get("confirmed") == "yes":
            await alter_configs(client, resource_of(name), [change])
            return RedirectResponse(f"/topics/{segment(name)}#options", 303)
        entries = {each.name: each for each in await describe_configs(client, resource_of(name))}
        if option not in entries:
            raise HTTPException(400, f"Topics have no option {option!r}.")
        await alter_configs(client, resource_of(name), [change], validate_only=True)
        before = entries[option]
        old = "[hidden]" if before.sensitive else before.value
        flag = f"--delete {option}" if delete else f"--set {shlex.quote(f'{option}={value}')}"
        plan = Plan(
            title=f"Change an option of {name}",
            text="The broker accepts this change. It takes effect at once.",
            button="Change it",
            action=f"/topics/{segment(name)}/alter",
            back=f"/topics/{segment(name)}",
            fields=[
                ("option", option),
                ("value", value),
                ("operation", "delete" if delete else "set"),
            ],
            heads=["Option", "Now", "Then"],
            rows=[[option, old, "its default" if delete else value]],
            needs=f"ALTER_CONFIGS on topic {name}",
            command=f"barnabas configs alter --topic {shlex.quote(name)} {flag}",
        )
        return ask(context, request, plan)

    async def delete(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        if form.get("confirmed") == "yes":
            if form.get("name") != name:
                raise HTTPException(400, "The name that you typed is not the topic's.")
            [outcome] = await delete_topics(client, [name])
            if outcome.error is not None:
                raise outcome.error
            return report(
                context, request, "Deleted", [(f"Topic {name}", None)], "/topics", done="deleted"
            )
        found = await described(client, name)
        listing = await partitions_of(client, found, request)
        kept = sum(row["kept"] or 0 for row in listing.rows)
        values = {
            "name": name,
            "base": f"/topics/{segment(name)}",
            "partitions": len(found.partitions),
            "kept": kept,
            "command": f"barnabas topics delete {shlex.quote(name)}",
        }
        return context.templates.page(request, "topic_delete.html", values)

    async def add_partitions(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        count = whole(form.get("count"), "Partitions")
        new = {name: NewPartitions(count)}
        if form.get("confirmed") == "yes":
            [outcome] = await create_partitions(client, new)
            if outcome.error is not None:
                raise outcome.error
            return RedirectResponse(f"/topics/{segment(name)}", 303)
        found = await described(client, name)
        [outcome] = await create_partitions(client, new, validate_only=True)
        if outcome.error is not None:
            raise outcome.error
        plan = Plan(
            title=f"Add partitions to {name}",
            text="Keys are spread over more partitions from then on: new records of a key may be "
            "in another partition than its old ones. Partitions cannot be removed again.",
            button="Add them",
            action=f"/topics/{segment(name)}/partitions",
            back=f"/topics/{segment(name)}",
            fields=[("count", str(count))],
            heads=["Topic", "Partitions now", "Then"],
            rows=[[name, len(found.partitions), count]],
            needs=f"ALTER on topic {name}",
            command=f"barnabas topics alter {shlex.quote(name)} --partitions {count}",
        )
        return ask(context, request, plan)

    async def delete_old(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        found = await described(client, name)
        which = form.get("partition").strip()
        numbers = (
            [whole(which, "Partition")] if which else [each.index for each in found.partitions]
        )
        text = form.get("before").strip()
        before = HIGH_WATERMARK if text == "end" else whole(text, "Before")
        if before < 0 and text != "end":
            raise HTTPException(400, "Before: must be an offset, or end.")
        wanted = {TopicPartition(name, number): before for number in numbers}
        if form.get("confirmed") == "yes":
            outcomes = await delete_records(client, wanted)
            return report(
                context,
                request,
                f"Records of {name}",
                [
                    (
                        f"Partition {partition.partition}",
                        outcome if isinstance(outcome, RequestError) else None,
                    )
                    for partition, outcome in outcomes.items()
                ],
                f"/topics/{segment(name)}",
                done="its old records are deleted",
            )
        starts, ends = await offsets_of(client, list(wanted))
        rows = []
        for partition in wanted:
            start, end = starts.get(partition), ends.get(partition)
            if start is None or end is None:
                rows.append([partition.partition, "–", "–", "its leader did not answer"])
                continue
            target = end if text == "end" else min(max(before, start), end)
            rows.append([partition.partition, start, target, target - start])
        plan = Plan(
            title=f"Delete records of {name}",
            text="The records before the new first offset are deleted for good.",
            button="Delete them",
            action=f"/topics/{segment(name)}/delete-records",
            back=f"/topics/{segment(name)}",
            fields=[("partition", which), ("before", text)],
            heads=["Partition", "First offset now", "Then", "Offsets deleted"],
            rows=rows,
            needs=f"DELETE on topic {name}",
            command=f"barnabas topics delete-records {shlex.quote(name)} --before {text}"
            + (f" --partition {which}" if which else ""),
        )
        return ask(context, request, plan)

    async def elect(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        found = await described(client, name)
        wanted = [each for each in found.partitions if state_of(each) == "not preferred"]
        if not wanted:
            return report(
                context,
                request,
                f"Leaders of {name}",
                [("Every partition", None)],
                f"/topics/{segment(name)}",
                done="its preferred replica leads already",
            )
        if form.get("confirmed") == "yes":
            outcomes = await elect_leaders(
                client, [TopicPartition(name, each.index) for each in wanted]
            )
            results = [
                (
                    f"Partition {partition.partition}",
                    None
                    if failed is None or failed.code is ErrorCode.ELECTION_NOT_NEEDED
                    else failed,
                )
                for partition, failed in outcomes.items()
            ]
            return report(
                context,
                request,
                f"Leaders of {name}",
                results,
                f"/topics/{segment(name)}",
                done="the preferred replica leads",
            )
        plan = Plan(
            title=f"Elect the preferred leaders of {name}",
            text="Each partition's first replica becomes its leader, if it is in sync. Clients "
            "follow within moments.",
            button="Elect them",
            action=f"/topics/{segment(name)}/elect",
            back=f"/topics/{segment(name)}",
            heads=["Partition", "Leader now", "Then"],
            rows=[[each.index, each.leader_id, each.replicas[0]] for each in wanted],
            needs="ALTER on the cluster",
            command=f"barnabas elect --topic {shlex.quote(name)}",
        )
        return ask(context, request, plan)

    async def fork(request: Request) -> Response:
        name = request.path_params["topic"]
        form = await context.form(request)
        client = context.session(request).client
        target, at = form.get("name").strip(), form.get("at").strip()
        given = {FORK_SOURCE: name}
        if at:
            given[FORK_AT] = str(whole(at, "Up to"))
        new = NewTopic(target, topic_configs=dict(given))
        if form.get("confirmed") == "yes":
            [created] = await create_topics(client, [new])
            if created.error is not None:
                raise created.error
            return RedirectResponse(f"/topics/{segment(target)}", 303)
        [created] = await create_topics(client, [new], validate_only=True)
        if created.error is not None:
            raise created.error
        plan = Plan(
            title=f"Fork {name}",
            text="A new topic begins with the same records and options. It shares their files, so "
            "it takes no space until one of the two changes.",
            button="Fork it",
            action=f"/topics/{segment(name)}/fork",
            back=f"/topics/{segment(name)}",
            fields=[("name", target), ("at", at)],
            heads=["Topic", "Fork", "Records before (ms since 1970)"],
            rows=[[name, target, at or "all"]],
            needs=f"READ on topic {name}, CREATE on topic {target}",
            command=f"barnabas topics fork {shlex.quote(name)} {shlex.quote(target)}"
            + (f" --at @{at}" if at else ""),
        )
        return ask(context, request, plan)

    one = "/topics/{topic:segment}"
    return [
        Route(f"{one}/alter", alter, methods=["POST"]),
        Route(f"{one}/delete", delete, methods=["POST"]),
        Route(f"{one}/partitions", add_partitions, methods=["POST"]),
        Route(f"{one}/delete-records", delete_old, methods=["POST"]),
        Route(f"{one}/elect", elect, methods=["POST"]),
        Route(f"{one}/fork", fork, methods=["POST"]),
    ]
