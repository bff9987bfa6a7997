"""`send` of a producer, without a line of Python on its way; see the Python twin."""

cimport cython

from barnabas.producer.accumulator.cython.accumulator cimport Accumulator
from barnabas.producer.accumulator.cython.batch cimport RecordFuture


cdef class RecordSender:
    """What a producer for plain programs inherits `send` from."""

    cdef public Accumulator _direct

    @cython.embedsignature(False)  # the docstring is what users read
    def send(
        self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None
    ):
        """Queue a record and return a future of its `RecordMetadata`.

        Blocks for at most max_block_ms while the topic's partitions are unknown or buffer.memory is
        exhausted, then raises KafkaTimeoutError.

            producer.send("orders", b"two teapots", key=b"customer-7", headers=[("v", b"1")])
            producer.send("orders", b"a cup").add_callback(lambda written: print(written.offset))
        """
        if self._direct is None:
            return self._prepare_and_send((topic, value, key, headers, partition, timestamp_ms))
        taken = self._direct.put(topic, value, key, headers, partition, timestamp_ms, False)
        if isinstance(taken, RecordFuture):
            return taken
        return self._wait_and_send(taken, (topic, value, key, headers, partition, timestamp_ms))
