"""The asyncio clients, with the names and behaviour of aiokafka."""
