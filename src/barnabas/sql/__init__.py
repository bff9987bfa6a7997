"""SQL over topics: each topic that a query names is a table of its records.

    partition, offset, timestamp, key, value, headers, and the fields of values that have fields

An engine parses the query and asks for the tables that it names (`TopicTable`): which offsets are
read, and how values become columns. `local_engine` runs DuckDB in this process, on Arrow batches
as they are fetched; `spark_engine` runs Spark. Both use the same dialect: names that need quotes
are put in backticks. Nothing is subscribed to, committed or written to a cluster.
"""
