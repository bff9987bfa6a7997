"""Replicas that go to another data directory of their broker."""

from __future__ import annotations

import shlex

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.log_dirs import alter_replica_log_dirs, describe_log_dirs_of
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.pages.topics import whole
from barnabas.console.rendering import size
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.structs import TopicPartitionReplica

ASK_MS = 3_000


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def relocate(request: Request) -> Response:
        broker_id = request.path_params["number"]
        form = await context.form(request)
        client = context.session(request).client
        topic, path = form.get("topic").strip(), form.get("directory").strip()
        number = whole(form.get("partition"), "Partition")
        replica = TopicPartitionReplica(topic, number, broker_id)
        back = f"/brokers/{broker_id}"
        if form.get("confirmed") == "yes":
            outcomes = await alter_replica_log_dirs(client, {replica: path})
            results = [(f"{topic}-{number}", failed) for failed in outcomes.values()]
            return report(context, request, "Directories", results, back, done="it goes there")
        wanted = TopicPartition(topic, number)
        found = (await describe_log_dirs_of(client, [broker_id], [wanted], timeout_ms=ASK_MS))[
            broker_id
        ]
        if isinstance(found, RequestError):
            raise found
        paths = [each.path for each in found]
        if path not in paths:
            raise HTTPException(400, f"Directory: must be one of {', '.join(paths)}.")
        now = next(
            (
                (each.path, held.size_bytes)
                for each in found
                for held in each.replicas
                if held.partition == wanted and not held.is_future
            ),
            None,
        )
        if now is None:
            raise HTTPException(404, f"Broker {broker_id} has no replica of {topic}-{number}.")
        plan = Plan(
            title="Move a replica to another directory",
            text="It is copied while the replica goes on to serve, and then takes its place. To "
            "cancel that, move it to where it is.",
            button="Move it",
            action=f"{back}/relocate",
            back=back,
            fields=[("topic", topic), ("partition", str(number)), ("directory", path)],
            heads=["Topic", "Partition", "Directory now", "Then", "To copy"],
            rows=[[topic, number, now[0], path, size(now[1] if now[0] != path else 0)]],
            needs="ALTER on the cluster",
            command=f"barnabas reassign execute plan.json  # log_dirs: {shlex.quote(path)}",
        )
        return ask(context, request, plan)

    return [Route("/brokers/{number:int}/relocate", relocate, methods=["POST"])]
