"""What every client shares: connections, version negotiation, cluster metadata, retries.

Producers, consumers, admin tools and brokers that talk to each other are built on `ClusterClient`.
Only `connection`, `opening`, `connection_pool`, `metadata_refresh` and `cluster_client` use
asyncio; the rest decides without waiting. There are no threads, so all of it runs on a simulated
loop, too.
"""
