"""One client doing one thing once, in a process of its own; prints its figures as JSON.

python -m bench.client_child SCENARIO CLIENT HOST:PORT TOPIC COUNT
"""

from __future__ import annotations

import json
import sys
import warnings

from bench import client_readers, client_senders

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # kafka-python's, about its own imports
    scenario, client, bootstrap, topic, count = sys.argv[1:]
    way = (client_senders.WAYS | client_readers.WAYS)[scenario][client]
    print(json.dumps(way(bootstrap, topic, int(count))))
