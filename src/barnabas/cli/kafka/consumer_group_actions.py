"""The actions of `kafka-consumer-groups`, and its failures.

As with Kafka's tool, a failure is printed on standard output, and the exit code is 0.
"""

from __future__ import annotations

from functools import partial

from barnabas.admin.groups import CONSUMER_PROTOCOL, ListedGroup, delete_groups, list_groups
from barnabas.cli import session
from barnabas.cli.kafka.consumer_group_offsets import delete_offsets, reset
from barnabas.cli.kafka.consumer_group_view import describe, print_error, row
from barnabas.cli.kafka.consumer_groups import STATES, TYPES, chosen
from barnabas.cli.kafka.exceptions import named
from barnabas.cli.kafka.flags import Given, UsageError
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import BarnabasError


def act(action: str, given: Given) -> int:
    """Do what one action says."""
    connection = given.connection(timeout_s=max(given["timeout"], 1) / 1000)
    try:
        session.run(connection, partial(_act, action, given))
    except UsageError:
        raise
    except (BarnabasError, OSError) as failure:
        notes = "".join(f"; {note}" for note in getattr(failure, "__notes__", []))
        print_error(f"Executing consumer group command failed due to {named(failure)}{notes}")
    return 0


async def _act(action: str, given: Given, client: ClusterClient) -> None:
    if action == "list":
        await _list(client, given)
        return
    names = list(dict.fromkeys(given["group"]))
    if "all-groups" in given:
        names = [group.name for group in await _groups(client)]
    if action == "describe":
        await describe(client, names, given)
    elif action == "delete":
        await _delete(client, names)
    elif action == "delete-offsets":
        await delete_offsets(client, names[-1], given["topic"])
    else:
        await reset(client, names, given)


async def _groups(
    client: ClusterClient, states: list[str] | None = None, types: list[str] | None = None
) -> list[ListedGroup]:
    """Return the groups of consumers, without those of other protocols (Connect's)."""
    listed = await list_groups(client, states or [], types or [])
    return [group for group in listed if group.protocol_type in ("", CONSUMER_PROTOCOL)]


async def _list(client: ClusterClient, given: Given) -> None:
    columns = [key for key in ("type", "state") if key in given]
    types = [each.lower() for each in chosen(given["type"], TYPES, "types")]
    groups = await _groups(client, chosen(given["state"], STATES, "state"), types)
    if not columns:
        for group in groups:
            print(group.name)
        return
    widths = [max([15, *(len(group.name) for group in groups)]) + 10, 20, 20]
    print(row(["GROUP", *(key.upper() for key in columns)], widths))
    for group in groups:
        cells = {"type": group.type.capitalize(), "state": group.state}
        print(row([group.name, *(cells[key] for key in columns)], widths))


async def _delete(client: ClusterClient, names: list[str]) -> None:
    outcomes = await delete_groups(client, names)
    deleted = ", ".join(f"'{name}'" for name, error in outcomes.items() if error is None)
    failed = {name: error for name, error in outcomes.items() if error is not None}
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for name, error in failed.items():
        print(f"* Group '{name}' could not be deleted due to: {named(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")
