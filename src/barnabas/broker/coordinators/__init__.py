"""The group and transaction coordinators that a broker hosts, on its partitions."""
