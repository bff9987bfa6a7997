"""pytest-asyncio: coroutines, with a consumer and a producer for each test."""

import pytest
import pytest_asyncio

from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer


@pytest_asyncio.fixture
async def producer(barnabas_bootstrap):
    async with AIOKafkaProducer(bootstrap_servers=barnabas_bootstrap) as producer:
        yield producer


@pytest.mark.asyncio
async def test_records_arrive_in_order(barnabas_bootstrap, producer):
    for number in range(3):
        await producer.send_and_wait("readings", b"%d" % number)
    options = {"bootstrap_servers": barnabas_bootstrap, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer("readings", **options) as consumer:
        assert [(await consumer.getone()).value for _ in range(3)] == [b"0", b"1", b"2"]
