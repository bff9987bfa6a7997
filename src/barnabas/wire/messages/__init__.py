"""The declarations of all messages, one module per API with its request and its response.

Names are Kafka's in snake case. A version range reaches from the oldest version that Kafka 3.9
speaks to the newest of the 4.x line. Modules are imported on first use (see `barnabas.wire.apis`).
"""
