"""A Spark source that reads segment files directly, without a broker."""
