"""Why an option does not act: the reasons that warnings, errors and the option reference give."""

from __future__ import annotations

GROUPS = "arrives with consumer groups"
TRANSACTIONS = "arrives with transactions"
REPLICATION = "arrives with replication between brokers"
ZOOKEEPER = "arrives with ZooKeeper coordination"
SECURITY = "arrives with TLS, SASL and ACLs"
QUOTAS = "arrives with quotas"
KRAFT = "belongs to KRaft, which this broker does not run"
TIERED = "needs tiered storage, which this broker does not have"
KERBEROS = "needs Kerberos, which this broker does not speak"
JAVA = "is about classes and settings of the Java machine"
METRICS = "shapes Java's metric reporters; metrics here are counted and exported in another way"
EAGER = "nothing to purge: completed operations leave their watch lists at once"
EVENT_LOOP = "this broker runs on one event loop"
IO_THREADS = "the threads of num.io.threads do this work"
REQUEST_COUNT = "waiting requests are bounded by queued.max.requests alone"
