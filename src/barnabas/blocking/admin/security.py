"""ACLs and credentials, as `KafkaAdminClient` lists and changes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.admin import acls as calls
from barnabas.admin import scram
from barnabas.admin.acls import ACL, ACLFilter
from barnabas.admin.answers import class_of, message_of
from barnabas.admin.scram import Alteration
from barnabas.client.cluster_client import ClusterClient
from barnabas.errors import NoError
from barnabas.model.errors import RequestError


async def describe_acls(
    client: ClusterClient, acl_filter: ACLFilter
) -> tuple[list[ACL], type[RequestError]]:
    """Return the rules that a filter matches, and NoError; raises if the request is rejected.

    acls, error = admin.describe_acls(ACLFilter(
        "User:ada", None, ACLOperation.ANY, ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)))
    """
    return await calls.describe_acls(client, acl_filter), NoError


async def create_acls(client: ClusterClient, acls: Iterable[ACL]) -> dict[str, list[Any]]:
    """Add rules; return those that `succeeded`, and the error classes of those that `failed`.

    admin.create_acls([ACL("User:ada", "*", ACLOperation.READ, ACLPermissionType.ALLOW,
                           ResourcePattern(ResourceType.TOPIC, "orders"))])
    """
    outcomes = await calls.create_acls(client, acls)
    return {
        "succeeded": [outcome.acl for outcome in outcomes if outcome.error is None],
        "failed": [type(outcome.error) for outcome in outcomes if outcome.error is not None],
    }


async def delete_acls(
    client: ClusterClient, acl_filters: Iterable[ACLFilter]
) -> list[tuple[ACLFilter, list[ACL], type[RequestError]]]:
    """Delete the rules that filters match; return (filter, matched rules, error class) of each.

    A rule that was matched and could not be deleted shows as the error of its filter.

        [(_, removed, error)] = admin.delete_acls([acl])
    """
    deletions = await calls.delete_acls(client, acl_filters)
    return [
        (
            deletion.filter,
            [outcome.acl for outcome in deletion.matched],
            class_of(
                deletion.error
                or next((each.error for each in deletion.matched if each.error is not None), None)
            ),
        )
        for deletion in deletions
    ]


async def describe_user_scram_credentials(
    client: ClusterClient, users: Iterable[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the mechanisms of users (None: all that have some), or the error of each.

    admin.describe_user_scram_credentials(["ada"])["ada"]["credential_infos"]
    """
    described = await scram.describe_user_scram_credentials(client, users)
    return {
        user: {"error": str(outcome), "credential_infos": []}
        if isinstance(outcome, RequestError)
        else {
            "error": None,
            "credential_infos": [
                {"mechanism": each.mechanism, "iterations": each.iterations} for each in outcome
            ],
        }
        for user, outcome in described.items()
    }


async def alter_user_scram_credentials(
    client: ClusterClient, alterations: Iterable[Alteration]
) -> dict[str, str | None]:
    """Set and remove credentials of users; return the error of each, or None.

    admin.alter_user_scram_credentials([
        UserScramCredentialUpsertion("ada", "SCRAM-SHA-512", "secret")])
    """
    outcomes = await scram.alter_user_scram_credentials(client, alterations)
    return {user: message_of(error) for user, error in outcomes.items()}
