"""Found by Spark by its name: makes `format("barnabas-log")` known without registration."""

from barnabas.spark.logfiles.source import BarnabasLogSource as DefaultSource

__all__ = ["DefaultSource"]
