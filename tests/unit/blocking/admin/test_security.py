"""Rules and credentials in the shapes of kafka-python, against a scripted broker."""

from __future__ import annotations

from tests.unit.admin.scripted import converse, in_turn

from barnabas.admin.acls import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
)
from barnabas.admin.scram import ScramMechanism, UserScramCredentialDeletion
from barnabas.blocking.admin import security
from barnabas.errors import NoError
from barnabas.model.request_errors import (
    ClusterAuthorizationFailedError,
    InvalidRequestError,
    UnacceptableCredentialError,
)
from barnabas.wire.messages import alter_user_scram_credentials as alteration
from barnabas.wire.messages import create_acls as creation
from barnabas.wire.messages import delete_acls as deletion
from barnabas.wire.messages import describe_acls as description
from barnabas.wire.messages import describe_user_scram_credentials as credentials

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
ADA_READS = ACL("User:ada", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ORDERS)


def matching(error_code: int) -> deletion.DeleteAclsMatchingAcl:
    return deletion.DeleteAclsMatchingAcl(
        error_code=error_code,
        resource_type=2,
        resource_name="orders",
        principal="User:ada",
        host="*",
        operation=3,
        permission_type=3,
    )


def test_rules_come_with_the_class_of_success() -> None:
    entry = description.AclDescription(
        principal="User:ada", host="*", operation=3, permission_type=3
    )
    resource = description.DescribeAclsResource(
        resource_type=2, resource_name="orders", pattern_type=3, acls=[entry]
    )
    answer = description.DescribeAclsResponse(resources=[resource])
    found, _ = converse(
        {description.DescribeAclsRequest: in_turn(answer)},
        lambda client: security.describe_acls(client, ADA_READS),
    )
    assert found == ([ADA_READS], NoError)


def test_rules_that_were_added_are_told_from_those_that_were_not() -> None:
    results = [creation.AclCreationResult(), creation.AclCreationResult(error_code=42)]
    answer = creation.CreateAclsResponse(results=results)
    outcome, _ = converse(
        {creation.CreateAclsRequest: in_turn(answer)},
        lambda client: security.create_acls(client, [ADA_READS, ADA_READS]),
    )
    assert outcome == {"succeeded": [ADA_READS], "failed": [InvalidRequestError]}


def test_a_rule_that_could_not_be_deleted_is_the_error_of_its_filter() -> None:
    results = [
        deletion.DeleteAclsFilterResult(matching_acls=[matching(0)]),
        deletion.DeleteAclsFilterResult(matching_acls=[matching(0), matching(31)]),
        deletion.DeleteAclsFilterResult(error_code=42),
    ]
    answer = deletion.DeleteAclsResponse(filter_results=results)
    deletions, _ = converse(
        {deletion.DeleteAclsRequest: in_turn(answer)},
        lambda client: security.delete_acls(client, [ADA_READS] * 3),
    )
    assert deletions == [
        (ADA_READS, [ADA_READS], NoError),
        (ADA_READS, [ADA_READS, ADA_READS], ClusterAuthorizationFailedError),
        (ADA_READS, [], InvalidRequestError),
    ]


def test_credentials_and_the_errors_of_users() -> None:
    info = credentials.CredentialInfo(mechanism=2, iterations=8192)
    results = [
        credentials.DescribeUserScramCredentialsResult(user="ada", credential_infos=[info]),
        credentials.DescribeUserScramCredentialsResult(
            user="eve", error_code=91, error_message="no such user"
        ),
    ]
    answer = credentials.DescribeUserScramCredentialsResponse(results=results)
    found, _ = converse(
        {credentials.DescribeUserScramCredentialsRequest: in_turn(answer)},
        lambda client: security.describe_user_scram_credentials(client, ["ada", "eve"]),
    )
    sha_512 = {"mechanism": ScramMechanism.SCRAM_SHA_512, "iterations": 8192}
    assert found["ada"] == {"error": None, "credential_infos": [sha_512]}
    assert found["eve"]["credential_infos"] == []
    assert "no such user" in found["eve"]["error"]


def test_changed_credentials_and_the_errors_of_users() -> None:
    results = [
        alteration.AlterUserScramCredentialsResult(user="ada"),
        alteration.AlterUserScramCredentialsResult(user="eve", error_code=93),
    ]
    answer = alteration.AlterUserScramCredentialsResponse(results=results)
    removed = [UserScramCredentialDeletion(user, 2) for user in ("ada", "eve")]
    outcomes, _ = converse(
        {alteration.AlterUserScramCredentialsRequest: in_turn(answer)},
        lambda client: security.alter_user_scram_credentials(client, removed),
    )
    assert outcomes["ada"] is None
    assert UnacceptableCredentialError.description in outcomes["eve"]
