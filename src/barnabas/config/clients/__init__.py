"""Options of the clients."""
