"""polars and pandas: a topic as an Arrow table of our consumer, grouped by each library."""

import json
import sys

import pandas
import polars
import pyarrow

from barnabas import KafkaConsumer

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
tables: list[pyarrow.Table] = []
options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "group_id": None}
with KafkaConsumer(topic, **options) as consumer:
    while sum(map(len, tables)) < count:
        tables.append(pyarrow.table(consumer.poll_arrow(timeout_ms=1000)))
table = pyarrow.concat_tables(tables)
by_polars = polars.from_arrow(table).group_by("key").agg(polars.len().alias("n"))
by_pandas = table.to_pandas(types_mapper=pandas.ArrowDtype).groupby("key").size()
print(
    json.dumps(
        {
            "polars": {key.decode(): n for key, n in by_polars.iter_rows()},
            "pandas": {key.decode(): int(n) for key, n in by_pandas.items()},
        }
    )
)
