"""The machine of the producer: accumulator, partitioners, sender, idempotence, transactions."""
