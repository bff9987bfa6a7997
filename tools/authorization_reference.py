"""Write docs/reference/authorization.md from the broker's table.

python -m tools.authorization_reference            write the page
python -m tools.authorization_reference --check    fail when the page is stale
"""

from __future__ import annotations

from tools.generated import ROOT, main

from barnabas.broker.handlers.authorization import AUTHORIZATION, Answer, Case, Need
from barnabas.security.acl.binding import title

PAGE = ROOT / "docs" / "reference" / "authorization.md"

HEAD = """\
<!-- Written by tools/authorization_reference.py from the broker's own table: do not edit. -->

# Authorization

With `authorizer.class.name` set, each request needs permissions, which ACLs grant or deny. Its
names `kafka.security.authorizer.AclAuthorizer`,
`org.apache.kafka.metadata.authorizer.StandardAuthorizer` and `barnabas.security.acl.AclAuthorizer`
mean the same.

1. A principal in `super.users` may do everything.
2. The ACLs of a resource are those of its literal name, of the literal name `*`, and of every
   prefix of its name. If there are none at all, `allow.everyone.if.no.acl.found` decides.
3. A DENY that matches wins over every ALLOW, whatever their patterns.
4. An ALLOW of Read, Write, Delete or Alter implies Describe; one of AlterConfigs implies
   DescribeConfigs. A DENY implies nothing.

`barnabas acls list --why PRINCIPAL OPERATION RESOURCE` shows which rule decides.

## What each API needs

Permissions are checked in the order given, before anything is looked up: a topic that does not
exist is denied like any other. Codes: 29 topic, 30 group, 31 cluster, 53 transactional id
authorization failed. *Each* is an error of every topic, partition, group or other part that is
denied, *whole* one of the whole response. What is *omitted* is left out without an error.

| API | request | versions | needs | denied |
| --- | --- | --- | --- | --- |
"""

TAIL = """
## Differences from Apache Kafka

The suite runs the same table against Apache Kafka 3.9. Known differences:

- ConsumerGroupHeartbeat and ConsumerGroupDescribe also need Describe on the topics, as in Kafka 4.
- DeleteTopics by id needs Describe, too, as in Kafka with ZooKeeper; with KRaft, Delete is enough.
- DescribeConfigs, AlterConfigs and IncrementalAlterConfigs ask about groups, as in Kafka 4.
- Writing to an internal topic with the client id `__admin_client` needs ClusterAction on the
  cluster in addition to Write on the topic: otherwise a producer could forge offsets.
- A host in an ACL may be written in any form of the address, `::1` as well as `0:0:0:0:0:0:0:1`.
- The audit log has one JSON object per line, by the logger `barnabas.audit`; repeats are counted.
- Denied requests are also logged in the words of Kafka's `kafka.authorizer.logger`, by
  `barnabas.authorizer`; its `resourceRefCount` counts repeats within a second.
- AlterConfigs rejects the levels of loggers; IncrementalAlterConfigs sets them, as in Kafka.
"""

ANSWERS = {
    Answer.WHOLE: "{code} whole",
    Answer.EACH: "{code} each",
    Answer.BOTH: "{code} whole and each",
    Answer.OMITTED: "omitted",
}


def page() -> str:
    """Return the whole page."""
    rows = [
        row(api, case)
        for api, cases in sorted(AUTHORIZATION.items())
        for case in cases or (Case("any", ()),)
    ]
    return HEAD + "".join(rows) + TAIL


def row(api: str, case: Case) -> str:
    """Return the row of one case."""
    last = "" if case.last_version is None else case.last_version
    versions = "all" if (case.first_version, last) == (0, "") else f"{case.first_version}–{last}"
    needs = "; ".join(permissions(need) for need in case.needs) or "nothing"
    denied = "; ".join(denial(need) for need in case.needs) or "–"
    return f"| {api} | {case.name} | {versions} | {needs} | {denied} |\n"


def permissions(need: Need) -> str:
    """Return the permissions of which one is enough."""
    return " or ".join(f"{title(each.operation)} {title(each.resource)}" for each in need.any_of)


def denial(need: Need) -> str:
    """Return how a denial is answered."""
    text = ANSWERS[need.answer].format(code=int(need.code))
    hidden = need.named is False and need.answer is not Answer.OMITTED
    return f"{text}, name hidden" if hidden else text


if __name__ == "__main__":
    raise SystemExit(main(PAGE, page(), "tools.authorization_reference"))
