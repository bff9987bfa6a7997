"""Rules, credentials, tokens and quotas: what goes out, what comes back, and failures of each."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from tests.unit.admin.scripted import converse, in_turn

from barnabas.admin.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    create_acls,
    delete_acls,
    describe_acls,
    operations_of,
)
from barnabas.admin.quotas import (
    ClientQuota,
    QuotaAlteration,
    QuotaFilter,
    QuotaMatch,
    alter_client_quotas,
    describe_client_quotas,
)
from barnabas.admin.scram import (
    ScramCredential,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.admin.tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from barnabas.client.errors import UnsupportedApiError
from barnabas.model.errors import InvalidValueError
from barnabas.model.request_errors import (
    DelegationTokenExpiredError,
    InvalidRequestError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnacceptableCredentialError,
)
from barnabas.wire.messages import alter_client_quotas as quota_alteration
from barnabas.wire.messages import alter_user_scram_credentials as scram_alteration
from barnabas.wire.messages import create_acls as creation
from barnabas.wire.messages import create_delegation_token as token_creation
from barnabas.wire.messages import delete_acls as deletion
from barnabas.wire.messages import describe_acls as description
from barnabas.wire.messages import describe_client_quotas as quota_description
from barnabas.wire.messages import describe_delegation_token as token_description
from barnabas.wire.messages import describe_user_scram_credentials as scram_description
from barnabas.wire.messages import expire_delegation_token as expiry
from barnabas.wire.messages import renew_delegation_token as renewal

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
ADA_READS = ACL("User:ada", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ORDERS)
USERS = ResourcePatternFilter(ResourceType.USER, None, ACLResourcePatternType.LITERAL)
OF_USERS = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, USERS)


def test_a_rule_succeeds_or_fails_for_itself() -> None:
    results = [
        creation.AclCreationResult(),
        creation.AclCreationResult(error_code=42, error_message="no such principal"),
    ]
    answer = creation.CreateAclsResponse(results=results)
    outcomes, broker = converse(
        {creation.CreateAclsRequest: in_turn(answer)},
        lambda cluster_client: create_acls(cluster_client, [ADA_READS, ADA_READS]),
    )
    assert outcomes[0].error is None
    assert isinstance(outcomes[1].error, InvalidRequestError)
    assert "no such principal" in str(outcomes[1].error)
    [asked] = broker.asked(creation.CreateAclsRequest)
    sent: Any = asked.message
    assert (sent.creations[0].resource_pattern_type, sent.creations[0].operation) == (3, 3)


def test_rules_are_read_with_what_this_release_does_not_know() -> None:
    entry = description.AclDescription(
        principal="User:ada", host="*", operation=3, permission_type=3
    )
    strange = description.AclDescription(
        principal="User:ada", host="*", operation=99, permission_type=3
    )
    resource = description.DescribeAclsResource(
        resource_type=2, resource_name="orders", pattern_type=3, acls=[entry, strange]
    )
    answer = description.DescribeAclsResponse(resources=[resource])
    found, _ = converse(
        {description.DescribeAclsRequest: in_turn(answer)},
        lambda cluster_client: describe_acls(cluster_client, ADA_READS),
    )
    assert found[0] == ADA_READS
    assert found[1].operation is ACLOperation.UNKNOWN


def test_a_cluster_without_an_authorizer_says_so() -> None:
    answer = description.DescribeAclsResponse(error_code=54, error_message="none configured")
    with pytest.raises(SecurityDisabledError, match="none configured"):
        converse(
            {description.DescribeAclsRequest: in_turn(answer)},
            lambda cluster_client: describe_acls(cluster_client, ADA_READS),
        )


def test_rules_about_users_need_a_version_that_has_them() -> None:
    with pytest.raises(UnsupportedApiError, match="this client needs 3"):
        converse(
            {description.DescribeAclsRequest: in_turn(description.DescribeAclsResponse())},
            lambda cluster_client: describe_acls(cluster_client, OF_USERS),
            {description.DescribeAclsRequest: (0, 2)},
        )


def test_deletions_tell_what_matched() -> None:
    matched = deletion.DeleteAclsMatchingAcl(
        error_code=31,
        resource_type=2,
        resource_name="orders",
        principal="User:ada",
        host="*",
        operation=3,
        permission_type=3,
    )
    result = deletion.DeleteAclsFilterResult(matching_acls=[matched])
    answer = deletion.DeleteAclsResponse(filter_results=[result])
    [outcome], _ = converse(
        {deletion.DeleteAclsRequest: in_turn(answer)},
        lambda cluster_client: delete_acls(cluster_client, [ADA_READS]),
    )
    assert (outcome.filter, outcome.error) == (ADA_READS, None)
    assert outcome.matched[0].acl == ADA_READS
    assert outcome.matched[0].error is not None


def test_rules_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(InvalidValueError, match="resource_type ANY"):
        ResourcePattern(ResourceType.ANY, "orders")
    with pytest.raises(InvalidValueError, match="pattern_type MATCH"):
        ResourcePattern(ResourceType.TOPIC, "orders", ACLResourcePatternType.MATCH)
    with pytest.raises(InvalidValueError, match="operation 3: must be a member of ACLOperation"):
        ACLFilter(None, None, 3, ACLPermissionType.ANY, USERS)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="acls"):
        converse({}, lambda cluster_client: create_acls(cluster_client, [OF_USERS]))  # type: ignore[list-item]


def test_operations_come_as_bits() -> None:
    assert operations_of(-(1 << 31)) is None
    assert operations_of(1 << 3 | 1 << 11) == {ACLOperation.READ, ACLOperation.ALTER_CONFIGS}


def test_passwords_stay_here() -> None:
    made = UserScramCredentialUpsertion("ada", "scram-sha-256", "pencil", 4096, b"salt")
    expected = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    results = [
        scram_alteration.AlterUserScramCredentialsResult(user="ada"),
        scram_alteration.AlterUserScramCredentialsResult(user="eve", error_code=93),
    ]
    answers = in_turn(
        scram_alteration.AlterUserScramCredentialsResponse(
            results=[scram_alteration.AlterUserScramCredentialsResult(user="ada", error_code=41)]
        ),
        scram_alteration.AlterUserScramCredentialsResponse(results=results),
    )
    gone = UserScramCredentialDeletion("eve", 2)
    outcomes, broker = converse(
        {scram_alteration.AlterUserScramCredentialsRequest: answers},
        lambda cluster_client: alter_user_scram_credentials(cluster_client, [made, gone]),
    )
    assert outcomes["ada"] is None
    assert isinstance(outcomes["eve"], UnacceptableCredentialError)
    asked = broker.asked(scram_alteration.AlterUserScramCredentialsRequest)
    assert len(asked) == 2
    sent: Any = asked[1].message
    assert sent.upsertions[0].salted_password == expected
    assert (sent.deletions[0].name, sent.deletions[0].mechanism) == ("eve", 2)
    assert "pencil" not in repr(made)


def test_credentials_are_described_without_secrets() -> None:
    info = scram_description.CredentialInfo(mechanism=2, iterations=8192)
    results = [
        scram_description.DescribeUserScramCredentialsResult(user="ada", credential_infos=[info]),
        scram_description.DescribeUserScramCredentialsResult(user="eve", error_code=91),
    ]
    answer = scram_description.DescribeUserScramCredentialsResponse(results=results)
    found, _ = converse(
        {scram_description.DescribeUserScramCredentialsRequest: in_turn(answer)},
        lambda cluster_client: describe_user_scram_credentials(cluster_client, ["ada", "eve"]),
    )
    assert found["ada"] == (ScramCredential(ScramMechanism.SCRAM_SHA_512, 8192),)
    assert isinstance(found["eve"], ResourceNotFoundError)


def test_credentials_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="did you mean SCRAM_SHA_256"):
        UserScramCredentialDeletion("ada", "SCRAM-SHA-265")
    with pytest.raises(InvalidValueError, match="iterations=0"):
        UserScramCredentialUpsertion("ada", 1, "x", iterations=0)
    with pytest.raises(InvalidValueError, match="alteration 'ada'"):
        converse({}, lambda cluster_client: alter_user_scram_credentials(cluster_client, ["ada"]))  # type: ignore[list-item]


def test_the_life_of_a_token() -> None:
    made = token_creation.CreateDelegationTokenResponse(
        principal_type="User", principal_name="ada", token_id="t", hmac=b"h", max_timestamp_ms=9
    )
    described = token_description.DescribedDelegationToken(
        principal_type="User", principal_name="ada", token_id="t", hmac=b"h", max_timestamp=9
    )
    script = {
        token_creation.CreateDelegationTokenRequest: in_turn(made),
        renewal.RenewDelegationTokenRequest: in_turn(
            renewal.RenewDelegationTokenResponse(expiry_timestamp_ms=7)
        ),
        expiry.ExpireDelegationTokenRequest: in_turn(
            expiry.ExpireDelegationTokenResponse(error_code=66)
        ),
        token_description.DescribeDelegationTokenRequest: in_turn(
            token_description.DescribeDelegationTokenResponse(tokens=[described])
        ),
    }

    async def client(cluster_client: Any) -> Any:
        token = await create_delegation_token(
            cluster_client, renewers=["User:bob"], owner="User:ada"
        )
        assert (token.owner, token.requester, token.renewers) == ("User:ada", None, ("User:bob",))
        assert await renew_delegation_token(cluster_client, token.hmac) == 7
        with pytest.raises(DelegationTokenExpiredError):
            await expire_delegation_token(cluster_client, token.hmac)
        [seen] = await describe_delegation_token(cluster_client, ["User:ada"])
        assert (seen.token_id, seen.hmac, seen.max_ms) == ("t", b"h", 9)
        with pytest.raises(InvalidValueError, match="principal 'bob'"):
            await describe_delegation_token(cluster_client, ["bob"])

    _, broker = converse(script, client)
    [asked] = broker.asked(token_creation.CreateDelegationTokenRequest)
    sent: Any = asked.message
    assert (sent.owner_principal_name, sent.max_lifetime_ms) == ("ada", -1)


def test_quotas_are_set_removed_and_found() -> None:
    entity = [quota_alteration.EntityData(entity_type="user", entity_name="ada")]
    altered = quota_alteration.AlterClientQuotasResponse(
        entries=[quota_alteration.ResponseEntryData(entity=entity, error_code=42)]
    )
    found = quota_description.DescribeClientQuotasResponse(
        entries=[
            quota_description.EntryData(
                entity=[quota_description.EntityData(entity_type="user", entity_name=None)],
                values=[quota_description.ValueData(key="producer_byte_rate", value=5.0)],
            )
        ]
    )
    change = QuotaAlteration({"user": "ada"}, {"producer_byte_rate": None, "request": 2.0})

    async def client(cluster_client: Any) -> Any:
        [outcome] = await alter_client_quotas(cluster_client, [change], validate_only=True)
        assert outcome.entity == {"user": "ada"}
        assert isinstance(outcome.error, InvalidRequestError)
        default = [QuotaFilter("user", QuotaMatch.DEFAULT)]
        assert await describe_client_quotas(cluster_client, default, strict=True) == [
            ClientQuota({"user": None}, {"producer_byte_rate": 5.0})
        ]

    _, broker = converse(
        {
            quota_alteration.AlterClientQuotasRequest: in_turn(altered),
            quota_description.DescribeClientQuotasRequest: in_turn(found),
        },
        client,
    )
    sent: Any = broker.asked(quota_alteration.AlterClientQuotasRequest)[0].message
    ops = [(op.key, op.value, op.remove) for op in sent.entries[0].ops]
    assert ops == [("producer_byte_rate", 0.0, True), ("request", 2.0, False)]
    asked: Any = broker.asked(quota_description.DescribeClientQuotasRequest)[0].message
    assert (asked.components[0].match_type, asked.strict) == (1, True)
