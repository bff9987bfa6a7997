"""Found by Spark by its name: makes `format("barnabas-log")` known without registration."""

from barnabas.spark.log_source import BarnabasLogSource as DefaultSource

__all__ = ["DefaultSource"]
