"""The blocking clients: the cores of `aio`'s clients on an event loop in a thread of their own."""
