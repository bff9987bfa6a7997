"""`barnabas reassign`: move partitions between brokers."""
