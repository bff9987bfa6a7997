"""Every form of the pages with which something is changed, filled in and confirmed.

`{topic}`, `{group}` and `{id}` stand for things that exist.
"""

from __future__ import annotations

Fields = dict[str, str]

RULE = {
    "principal": "User:mallory", "permission": "ALLOW", "operation": "ALL", "type": "TOPIC",
    "name": "orders", "pattern": "LITERAL", "host": "*",
}  # fmt: skip

ACTIONS: dict[str, Fields] = {
    "/topics": {"name": "made", "partitions": "1"},
    "/topics/orders/alter": {"option": "retention.ms", "value": "77", "operation": "set"},
    "/topics/orders/delete": {"name": "orders"},
    "/topics/orders/partitions": {"count": "9"},
    "/topics/orders/delete-records": {"before": "end", "partition": "0"},
    "/topics/orders/elect": {},
    "/topics/orders/fork": {"name": "forked"},
    "/topics/orders/records/produce": {
        "value": "by mallory", "value_format": "text", "key_format": "null", "target": "orders",
        "partition": "0",
    },
    "/topics/orders/records/send": {"action": "again", "place": "0:0", "target": "orders"},
    "/topics/orders/records/import": {"lines": '{"value": "by mallory"}'},
    "/groups/billing/reset": {"move": "orders:0:0"},
    "/groups/billing/undo": {},
    "/groups/billing/forget": {"topic": "orders"},
    "/groups/billing/remove": {"member": "member somebody"},
    "/groups/billing/delete": {},
    "/transactions/payments-1/abort": {},
    "/hanging-transactions/abort": {"topic": "orders"},
    "/reassign/start": {"move": "orders:0:0"},
    "/reassign/cancel": {"partition": "orders:0"},
    "/reassign/unthrottle": {"topics": "orders"},
    "/brokers/0/relocate": {"topic": "orders", "partition": "0", "directory": "/elsewhere"},
    "/elections/elect": {"kind": "preferred", "partition": "orders-0"},
    "/acls/add": RULE,
    "/acls/remove": RULE | {"principal": "User:keeper"},
    "/users/set": {"name": "mallory", "password": "long-enough", "mechanism": "SCRAM-SHA-256"},
    "/users/remove": {"name": "carol"},
    "/quotas/set": {"user": "mallory", "key": "producer_byte_rate", "value": "1"},
    "/configs/alter": {
        "type": "cluster", "name": "", "option": "log.retention.ms", "value": "1",
        "operation": "set",
    },
}  # fmt: skip
"""By the path that each is sent to."""

HARMLESS = {"/login", "/logout", "/theme", "/zone", "/topics/{topic:segment}/records/schemas"}
"""What is posted and changes nothing but the session, or the browser's cookies."""
