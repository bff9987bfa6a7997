"""The small values that clients pass around, under the names that users of Kafka know."""
