"""kombu: the transport of Celery. Send tasks to a queue, or take them and acknowledge each."""

import sys

from kombu import Connection, Consumer, Queue

act, bootstrap, name, results, count = sys.argv[1:]
queue = Queue(name, routing_key=name)
consumer_config = {"session.timeout.ms": 6000, "auto.offset.reset": "earliest"}
options = {"kafka_consumer_config": consumer_config}

with Connection(f"confluentkafka://{bootstrap}", transport_options=options) as connection:
    if act == "send":
        producer = connection.Producer()
        for number in range(int(count)):
            producer.publish({"id": number}, routing_key=name, declare=[queue])
        print("sent", flush=True)
    else:
        done = connection.Producer()

        def take(body, message):
            done.publish(body, routing_key=results)
            message.ack()

        with Consumer(connection, queues=[queue], callbacks=[take], accept=["json"]):
            print("ready", flush=True)
            while True:
                connection.drain_events()
