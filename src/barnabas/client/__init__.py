"""What every client shares: connections, version negotiation, the cluster view, retries.

Producers, consumers, admin tools and brokers talking to each other are all built on `Switchboard`.
Only `connection.py` and `switchboard.py` touch asyncio; the rest decides without waiting.
"""
