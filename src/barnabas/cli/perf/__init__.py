"""`barnabas perf`: how fast a cluster is, as programs see it.

Each client runs in a process of its own (`worker`), which the command starts and reads (`fleet`).
Kafka's tools for the same purpose use the drivers (`producers`, `consumers`, `round_trips`) in
their own process.
"""
