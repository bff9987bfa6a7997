"""Other clients' interfaces over ours: a program moves by its imports.

    from confluent_kafka import Consumer, Producer                   # before
    from barnabas.compat.confluent_kafka import Consumer, Producer   # after

The names of kafka-python and aiokafka are those of our own clients, in `barnabas` and
`barnabas.aio`. What differs is in docs/how-to/move-to-barnabas.md.
"""
