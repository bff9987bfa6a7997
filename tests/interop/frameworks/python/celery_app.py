"""Celery on Kafka: send tasks, or be a worker that does them and acknowledges each when done."""

import json
import sys

from celery import Celery
from confluent_kafka import Producer

act, bootstrap, queue, results, count = sys.argv[1:]
app = Celery("work", broker=f"confluentkafka://{bootstrap}")
app.conf.update(
    task_default_queue=queue,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    broker_transport_options={
        "kafka_consumer_config": {"session.timeout.ms": 6000, "auto.offset.reset": "earliest"}
    },
)
done = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})


@app.task(name="work.double")
def double(number: int) -> None:
    done.produce(results, json.dumps({"id": number, "double": 2 * number}).encode())
    done.flush()


if act == "send":
    for number in range(int(count)):
        double.delay(number)
else:
    app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "-l", "INFO"])
