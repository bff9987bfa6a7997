"""The plain clients: the machines of `aio` on a loop of their own, in a thread of their own."""
