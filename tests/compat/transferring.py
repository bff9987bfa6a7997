"""A program that moves amounts between partitions in transactions, until it is killed.

    python transferring.py BOOTSTRAP TOPIC TRANSACTIONAL_ID SEED

Every transaction takes from one partition what it gives to others, so what it adds up to is 0.
Some are aborted, some are flushed between two records, so that a kill finds every step. A record
holds the transaction's name, the amount, and how many records the transaction has. Each
acknowledged end is printed.
"""

from __future__ import annotations

import os
import sys
from random import Random

from confluent_kafka import Producer

PARTITIONS = 3


def main(bootstrap: str, topic: str, transactional_id: str, seed: int) -> None:
    random = Random(seed)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 3,  # that an id has to be waited for after a kill is no news
        }
    )
    producer.init_transactions(30)
    number = 0
    while True:
        number += 1
        name = f"{transactional_id}/{os.getpid()}/{number}"
        amounts = [random.randrange(1, 100) for _ in range(random.randrange(1, 4))]
        moves = [-sum(amounts), *amounts]
        producer.begin_transaction()
        for amount in moves:
            value = f"{name} {amount} {len(moves)}".encode()
            producer.produce(topic, value, partition=random.randrange(PARTITIONS))
            if random.random() < 0.3:
                producer.flush(30)
        if random.random() < 0.2:
            producer.abort_transaction(30)
            print("aborted", name, flush=True)
        else:
            producer.commit_transaction(30)
            print("committed", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
