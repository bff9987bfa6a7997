"""A program in the words of kafka-python 2.0.2, for that library or for ours: prints what it saw.

python program.py (kafka | barnabas) HOST:PORT TOPIC
"""

import importlib
import json
import sys
from itertools import islice

root, bootstrap, topic = sys.argv[1:]
kafka = importlib.import_module(root)
admin_names = importlib.import_module(f"{root}.admin")
errors = importlib.import_module(f"{root}.errors")
structs = importlib.import_module(f"{root}.structs")

seen = []

admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id="program")
admin.create_topics([admin_names.NewTopic(name=topic, num_partitions=1, replication_factor=1)])
try:
    admin.create_topics(new_topics=[admin_names.NewTopic(topic, 1, 1)], validate_only=False)
except errors.TopicAlreadyExistsError as refusal:
    seen.append(("exists", refusal.errno))
admin.create_partitions({topic: admin_names.NewPartitions(total_count=2)})

producer = kafka.KafkaProducer(
    bootstrap_servers=[bootstrap],
    value_serializer=lambda value: json.dumps(value).encode("ascii"),
    key_serializer=str.encode,
    retries=5,
    acks="all",
    linger_ms=5,
    compression_type="gzip",
    max_block_ms=30000,
)
heard = []
for number in range(10):
    future = producer.send(topic, {"number": number}, key=f"key-{number}", partition=number % 2)
    future.add_callback(lambda metadata: heard.append((metadata.partition, metadata.offset)))
    future.add_errback(lambda failure: heard.append(repr(failure)))
metadata = future.get(timeout=60)
seen.append(("sent", metadata.topic == topic, metadata.partition, metadata.offset))
producer.flush()
seen.append(("heard", sorted(heard)))
producer.close()

consumer = kafka.KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    value_deserializer=lambda data: json.loads(data.decode("ascii")),
    key_deserializer=bytes.decode,
    consumer_timeout_ms=30000,
)
records = [(r.partition, r.offset, r.key, r.value["number"]) for r in islice(consumer, 10)]
seen.append(("read", sorted(records)))
first = kafka.TopicPartition(topic, 0)
consumer.commit({first: structs.OffsetAndMetadata(3, None)})
seen.append(("committed", consumer.committed(first), consumer.position(first)))
consumer.commit()
seen.append(("committed all", consumer.committed(first)))
consumer.seek(first, 1)
seen.append(("after seek", next(consumer).offset))
consumer.seek_to_beginning(first)
polled = consumer.poll(timeout_ms=30000, max_records=2)
seen.append(("polled", sum(len(found) for found in polled.values())))
seen.append(("ends", sorted(consumer.end_offsets([first]).values())))
seen.append(("subscription", consumer.subscription() == {topic}))
seen.append(("assignment", sorted(place.partition for place in consumer.assignment())))
seen.append(("partitions", sorted(consumer.partitions_for_topic(topic))))
seen.append(("topics", topic in consumer.topics()))
consumer.close()

groups = admin.list_consumer_groups()
seen.append(("groups", [tuple(group) for group in groups if group[0] == topic]))
offsets = admin.list_consumer_group_offsets(topic)
seen.append(("group offsets", sorted((p.partition, found.offset) for p, found in offsets.items())))
admin.delete_topics([topic])
admin.close()

print(json.dumps(seen))
