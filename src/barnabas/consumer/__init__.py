"""The machine of the consumer: subscription, fetcher, positions, group membership."""
