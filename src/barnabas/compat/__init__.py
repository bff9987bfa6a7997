"""Other clients' interfaces over ours: a program moves by its imports.

    from confluent_kafka import Consumer, Producer                   # before
    from barnabas.compat.confluent_kafka import Consumer, Producer   # after

`kafka` and `aiokafka` have the names of kafka-python and aiokafka, which our own clients have, too:
`barnabas.compat.kafka.KafkaProducer` is `barnabas.KafkaProducer`. What differs is in
docs/how-to/move-to-barnabas.md.
"""
