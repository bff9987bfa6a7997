"""TLS without a socket: stores, contexts, the names in certificates, and one connection's bytes."""
