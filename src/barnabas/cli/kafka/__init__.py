"""Kafka's own command lines: `barnabas kafka-topics --create --topic orders …`.

A file per tool: `FLAGS` declares what Kafka's tool takes, `run` does it with the functions behind
the `barnabas` commands, and prints what Kafka's tool prints. `tools.py` is the table of all.
"""
