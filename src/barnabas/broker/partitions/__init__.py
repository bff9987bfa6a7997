"""The partitions that a broker hosts, and the requests that wait for them."""
