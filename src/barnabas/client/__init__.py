"""What every client shares: connections, version negotiation, the cluster view, retries.

Producers, consumers, admin tools and brokers talking to each other are all built on `Switchboard`.
Only connections (`connection`, `opening`, `lines`), `freshness` and `switchboard` touch asyncio;
the rest decides without waiting. There are no threads, so all of it runs on a simulated loop, too.
"""
