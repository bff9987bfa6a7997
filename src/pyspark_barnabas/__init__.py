"""Found by Spark by its name: makes `format("barnabas")` known without registration."""

from barnabas.spark.datasource import BarnabasSource as DefaultSource

__all__ = ["DefaultSource"]
