"""The errors of the clients, under the names that users of Kafka know."""
