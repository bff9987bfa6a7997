"""What is read from the broker's parts when its metrics are scraped."""
