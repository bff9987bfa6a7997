"""Where a producer's records wait, encoded, until they are sent; see `accumulator_contract`.

A call of `append` is one critical section under the interpreter's lock, from the look at the open
batch to the note of the new record: between them nothing runs that could let another thread in or
start the garbage collector. The one thing that may, making the object of a new batch, comes first,
and the look is repeated after it.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_CheckExact
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from functools import partial

from barnabas.kernels.accumulator_contract import wrong_memory
from barnabas.kernels.contract import column_range
from barnabas.kernels.cython.builder cimport encode_headers
from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.fields cimport (
    Cells,
    Field,
    body_size,
    borrow,
    borrow_cells,
    give_back,
    give_back_cells,
    put_record,
    read_cell,
)
from barnabas.kernels.cython.layout cimport (
    RELEASE_FROM,
    load32,
    load64,
    store16,
    store32,
    store64,
    unsigned_size,
    zigzag64,
)
from barnabas.kernels.cython.murmur2 cimport hash_bytes
from barnabas.model.ids import TopicPartition

cdef enum:
    HEADER_SIZE = 61
    PREFIX_SIZE = 12
    CODEC_MASK = 0x07
    SIZE_MAX = 0x7FFFFFFF
    DELTAS_MAX = 16  # what the place in a batch may add to the size of a record

# The values of accumulator_contract.Refusal …
cdef enum:
    TOPIC = 1
    PARTITION = 2
    MEMORY = 3
    SIZE = 4
    TYPE = 5
    EMPTY = 6
    CLOSED = 7

# … and of Outcome.
cdef enum:
    EITHER = 0
    SUCCESS = 1
    FAILURE = 2
    FUTURE = 3


cdef class PendingBatch
cdef class Accumulator


@cython.final
cdef class Segment:
    """Some records of one call that follow each other in a batch."""

    cdef readonly PendingBatch batch
    cdef readonly int64_t first
    cdef readonly int64_t count


@cython.final
@cython.freelist(1024)
@cython.no_gc  # it points at its batch alone, and a batch lets go of everything when it is done
cdef class RecordFuture:
    """What became of one record; asks its batch whenever it is asked."""

    cdef readonly PendingBatch batch
    cdef int64_t index
    cdef int64_t timestamp
    cdef int64_t key_size
    cdef int64_t value_size
    cdef int64_t header_size

    @property
    def is_done(self):
        """Whether the outcome is known."""
        return self.batch.done

    @property
    def exception(self):
        """What went wrong, if something did."""
        cdef int64_t index = self.index
        cdef PendingBatch batch = find(self.batch, &index)
        return batch.failure_of(index) if batch.done else None

    @property
    def value(self):
        """Where the record was written, once that is known."""
        cdef int64_t index = self.index
        cdef PendingBatch batch = find(self.batch, &index)
        if not batch.done or batch.failure_of(index) is not None:
            return None
        return self.metadata(batch, index)

    cdef object metadata(self, PendingBatch batch, int64_t index):
        return batch.metadata_of(
            index, self.timestamp, self.key_size, self.value_size, self.header_size
        )

    def succeeded(self):
        """Tell whether the record was written."""
        return self.batch.done and self.exception is None

    def failed(self):
        """Tell whether the record was given up."""
        return self.batch.done and self.exception is not None

    def retriable(self):
        """Tell whether sending the record again may succeed."""
        return bool(getattr(self.exception, "retriable", False))

    def get(self, timeout=None):
        """Wait for the outcome, at most `timeout` seconds; return it or raise."""
        if not self.batch.done:
            self.batch.owner.wait(self.batch, timeout)
        failure = self.exception
        if failure is not None:
            raise failure
        return self.value

    def add_callback(self, callback, *args, **named):
        """Call with the metadata (after `args`) when the record is written."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(SUCCESS, callback, self)
        return self

    def add_errback(self, callback, *args, **named):
        """Call with the exception (after `args`) when the record is given up."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(FAILURE, callback, self)
        return self

    def add_both(self, callback, *args, **named):
        """Call with the metadata or with the exception."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(SUCCESS, callback, self)
        self.batch.add(FAILURE, callback, self)
        return self

    def resolve(self, future):
        """Set an asyncio future when the outcome is known; return that future."""
        self.batch.add(FUTURE, future, self)
        return future


cdef class PendingBatch:
    """Records of one partition that are sent together, and what became of them."""

    cdef readonly Accumulator owner
    cdef readonly object partition
    cdef readonly int64_t count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly bint done
    cdef readonly bint full
    cdef readonly int64_t base_offset
    cdef readonly int64_t append_time_ms
    cdef readonly int64_t log_start_offset
    cdef bytearray buffer  # of `capacity` bytes; None once its memory was given back
    cdef Py_ssize_t capacity
    cdef Py_ssize_t used
    cdef Py_ssize_t charge
    cdef object failure
    cdef dict failures
    cdef list watchers
    cdef list parts
    cdef PendingBatch parent
    cdef Py_ssize_t unfinished_parts
    cdef list call
    cdef Segment segment

    def __init__(self, Accumulator owner, partition, records=None):
        """Begin an empty batch, or take over a whole one that was built elsewhere."""
        cdef uint8_t* p
        self.begin(owner, partition)
        if records is not None:
            self.buffer = bytearray(records)
            self.used = self.capacity = len(self.buffer)
            if self.used < HEADER_SIZE:
                raise ValueError("a batch is longer than its header")
            p = <uint8_t*>PyByteArray_AS_STRING(self.buffer)
            self.base_timestamp = <int64_t>load64(p + 27)
            self.max_timestamp = <int64_t>load64(p + 35)
            self.count = <int32_t>load32(p + 57)

    cdef void begin(self, Accumulator owner, object partition):
        self.owner = owner
        self.partition = partition
        self.base_timestamp = self.max_timestamp = -1
        self.base_offset = self.append_time_ms = self.log_start_offset = -1
        self.used = HEADER_SIZE

    @property
    def exception(self):
        """Why the batch as a whole was given up."""
        return self.failure

    @property
    def size(self):
        """Bytes of the batch so far, before compression."""
        return self.used

    def view(self):
        """Return the batch as it was encoded; its header is there once `finish` was called."""
        assert self.buffer is not None, "the memory of this batch was given back"
        return memoryview(self.buffer)[:self.used]

    def finish(
        self,
        int codec=0,
        packed=None,
        int64_t producer_id=-1,
        int16_t producer_epoch=-1,
        int32_t base_sequence=-1,
        int attributes=0,
    ):
        """Write the header, and return the batch: with `packed` in the place of its records."""
        cdef bytearray batch
        cdef Field field
        cdef Py_ssize_t size
        cdef uint8_t* p
        cdef uint32_t crc
        assert self.buffer is not None, "the memory of this batch was given back"
        if packed is None:
            batch = self.buffer
            size = self.used
        else:
            borrow(packed, &field)
            try:
                size = HEADER_SIZE + field.size
                batch = bytearray()
                PyByteArray_Resize(batch, size)
                memcpy(PyByteArray_AS_STRING(batch) + HEADER_SIZE, field.data, field.size)
            finally:
                give_back(&field)
        p = <uint8_t*>PyByteArray_AS_STRING(batch)
        store64(p, 0)
        store32(p + 8, <uint32_t>(size - PREFIX_SIZE))
        store32(p + 12, 0xFFFFFFFF)
        p[16] = 2
        store16(p + 21, <uint16_t>((attributes & ~CODEC_MASK) | codec))
        store32(p + 23, <uint32_t>(self.count - 1))
        store64(p + 27, <uint64_t>self.base_timestamp)
        store64(p + 35, <uint64_t>self.max_timestamp)
        store64(p + 43, <uint64_t>producer_id)
        store16(p + 51, <uint16_t>producer_epoch)
        store32(p + 53, <uint32_t>base_sequence)
        store32(p + 57, <uint32_t>self.count)
        if size < RELEASE_FROM:
            crc = checksum(p + 21, size - 21, 0)
        else:
            with nogil:
                crc = checksum(p + 21, size - 21, 0)
        store32(p + 17, crc)
        return memoryview(batch)[:size]

    def complete(
        self, int64_t base_offset, int64_t append_time_ms=-1, int64_t log_start_offset=-1
    ):
        """Note that the broker has the records, from this offset on."""
        if not self.done:
            self.base_offset = base_offset
            self.append_time_ms = append_time_ms
            self.log_start_offset = log_start_offset
            self.end()

    def fail(self, failure, dict by_record=None):
        """Note that the records were given up; `by_record` has what is said of single ones."""
        if not self.done:
            self.failure = failure
            self.failures = by_record
            self.end()

    def become(self, parts):
        """Let smaller batches, which have the same records in order, stand for this one."""
        cdef PendingBatch part
        self.parts = list(parts)
        self.unfinished_parts = len(self.parts)
        for part in self.parts:
            part.parent = self

    def find(self, int64_t index):
        """Return the batch that the record ended up in, and its place there."""
        cdef PendingBatch batch = find(self, &index)
        return batch, index

    def future(self, int64_t index=0):
        """Return a future of one record that was not appended by itself."""
        cdef RecordFuture future = RecordFuture.__new__(RecordFuture)
        future.batch = self
        future.index = index
        future.timestamp = self.base_timestamp if index == 0 else -1
        future.key_size = future.value_size = future.header_size = -1
        return future

    def watch(self, callback):
        """Call when the batch is done, or now if it is."""
        self.add(EITHER, callback, None)

    cdef void add(self, int outcome, object callback, RecordFuture future):
        """Note whom to tell of the outcome, or tell now."""
        cdef list fresh
        if self.watchers is None and not self.done:
            fresh = []
            if self.watchers is None:
                self.watchers = fresh
        if self.done:
            self.tell(outcome, callback, future)
            return
        # Three entries each: a tuple for each would be an object more for the garbage collector.
        self.watchers.append(outcome)
        self.watchers.append(callback)
        self.watchers.append(future)

    cdef object failure_of(self, int64_t index):
        if self.failures is None:
            return self.failure
        return self.failures.get(index, self.failure)

    cdef object metadata_of(
        self,
        int64_t index,
        int64_t timestamp,
        int64_t key_size,
        int64_t value_size,
        int64_t header_size,
    ):
        cdef bint by_broker = self.append_time_ms >= 0
        cdef tuple fields = (
            self.partition[0],
            self.partition[1],
            self.partition,
            self.base_offset + index if self.base_offset >= 0 else -1,
            self.append_time_ms if by_broker else timestamp,
            1 if by_broker else 0,
            self.log_start_offset,
            None,
            key_size,
            value_size,
            header_size,
        )
        return tuple.__new__(self.owner.metadata, fields)

    cdef int end(self) except -1:
        cdef list watchers = self.watchers
        cdef PendingBatch parent = self.parent
        cdef Py_ssize_t place
        self.watchers = None
        self.done = True
        self.segment = None  # it points back here
        self.call = None
        self.owner.free(self)
        if watchers is not None:
            for place in range(0, len(watchers), 3):
                self.tell(watchers[place], watchers[place + 1], watchers[place + 2])
        if parent is not None:
            parent.unfinished_parts -= 1
            if parent.unfinished_parts == 0:
                parent.end()
        return 0

    cdef void tell(self, int outcome, object callback, RecordFuture future):
        cdef PendingBatch batch
        cdef int64_t index
        try:
            if outcome == EITHER:
                callback()
                return
            index = future.index
            batch = find(self, &index)
            failure = batch.failure_of(index)
            if outcome == FUTURE:
                if callback.done():
                    return
                if failure is None:
                    callback.set_result(future.metadata(batch, index))
                else:
                    callback.set_exception(failure)
            elif outcome == SUCCESS:
                if failure is None:
                    callback(future.metadata(batch, index))
            elif failure is not None:
                callback(failure)
        except Exception as wrong:  # of the user's callback, which is told of it
            self.owner.report(wrong)

    cdef int64_t put(
        self,
        int64_t timestamp,
        Field* key,
        Field* value,
        int64_t header_count,
        const char* headers,
        Py_ssize_t headers_size,
    ) noexcept:
        """Encode a record and return its place, or -1 if it does not fit."""
        cdef int64_t base_timestamp = self.base_timestamp if self.count else timestamp
        cdef uint64_t delta = zigzag64(
            <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp)
        )
        cdef int64_t body = body_size(delta, self.count, key, value, header_count, headers_size)
        cdef Py_ssize_t size = unsigned_size(<uint64_t>body << 1) + body
        if self.used + size > self.capacity and not self.owner.grow(self, self.used + size):
            return -1
        put_record(
            <uint8_t*>PyByteArray_AS_STRING(self.buffer) + self.used,
            body, delta, self.count, key, value, header_count, headers, headers_size,
        )
        self.used += size
        self.base_timestamp = base_timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        return self.count - 1

    cdef int note_segment(self, list segments, int64_t index) except -1:
        cdef Segment segment = self.segment
        if self.call is segments and segment.first + segment.count == index:
            segment.count += 1
            return 0
        segment = Segment.__new__(Segment)
        segment.batch = self
        segment.first = index
        segment.count = 1
        self.call = segments
        self.segment = segment
        segments.append(segment)
        return 0


cdef PendingBatch find(PendingBatch batch, int64_t* index):
    """Return the batch that a record ended up in, and set its place there."""
    cdef PendingBatch part
    while batch.parts is not None:
        for part in batch.parts:
            if index[0] < part.count:
                batch = part
                break
            index[0] -= part.count
    return batch


@cython.final
cdef class PendingPartition:
    """The batch of a partition that is being filled, and those that are full."""

    cdef readonly object partition
    cdef readonly PendingBatch open
    cdef readonly list closed
    cdef bint noted

    def __init__(self, partition):
        self.partition = partition
        self.closed = []


@cython.final
cdef class Topic:
    """The partitions of a topic, and the one where records without a key go for now."""

    cdef str name
    cdef int64_t count
    cdef list slots
    cdef int64_t sticky
    cdef int64_t sticky_bytes


cdef struct Headers:
    int64_t count
    const char* data
    Py_ssize_t size
    int64_t shown_size  # what the record's metadata tells: names and contents alone


cdef class Accumulator:
    """The open batches of all partitions, within a bounded memory."""

    cdef readonly Py_ssize_t batch_size
    cdef readonly Py_ssize_t batch_size_max
    cdef readonly int64_t memory
    cdef readonly int64_t in_use
    cdef public bint closed
    cdef public bint waiting  # somebody is before us: memory is given to those in turn alone
    cdef public object wake
    cdef public object detour
    cdef public object choose
    cdef public object wait
    cdef public object report
    cdef public object metadata
    cdef public object on_room
    cdef readonly int64_t record_size_max
    cdef readonly bint ignore_keys
    cdef object clock
    cdef dict topics
    cdef list pool
    cdef list changed
    cdef bint signalled

    def __init__(
        self,
        Py_ssize_t batch_size,
        int64_t memory,
        *,
        wake,
        detour,
        choose,
        wait,
        report,
        metadata,
        Py_ssize_t batch_size_max=0,
        int64_t record_size_max=SIZE_MAX,
        bint ignore_keys=False,
        clock=None,
    ):
        """Prepare to take records.

        `wake` is called when there is something new for the sender, `choose` names the partition
        for the next records without a key, `wait` blocks until a batch is done, `report` hears of
        callbacks that fail, `metadata` is the class of the value of a record's future, `clock`
        tells the time in milliseconds (default: the system's). A batch of `batch_size` bytes is
        full; as long as nobody takes it, it may grow up to `batch_size_max`.
        """
        if memory < batch_size:
            raise wrong_memory(memory, batch_size)
        self.batch_size = max(batch_size, HEADER_SIZE)
        self.batch_size_max = max(self.batch_size, batch_size_max)
        self.memory = memory
        self.wake = wake
        self.detour = detour
        self.choose = choose
        self.wait = wait
        self.report = report
        self.metadata = metadata
        self.record_size_max = record_size_max
        self.ignore_keys = ignore_keys
        self.clock = clock
        self.topics = {}
        self.pool = []
        self.changed = []

    def add_topic(self, str name, int64_t count):
        """Take records for the partitions 0 to count - 1 of a topic from now on."""
        cdef Topic topic = self.topics.get(name)
        if topic is None:
            topic = Topic.__new__(Topic)
            topic.name = name
            topic.slots = []
            topic.sticky = -1
        for index in range(len(topic.slots), count):
            topic.slots.append(PendingPartition(TopicPartition(name, index)))
        topic.count = count
        if topic.sticky >= count:
            topic.sticky = -1
        self.topics[name] = topic

    def forget_topic(self, str name):
        """Refuse records for a topic until it is added again."""
        cdef Topic topic = self.topics.get(name)
        if topic is not None:
            topic.count = 0

    def unstick(self, str name):
        """Choose anew where records without a key go."""
        cdef Topic topic = self.topics.get(name)
        if topic is not None:
            topic.sticky = -1

    def partition_count(self, name):
        """Return how many partitions of a topic are known; 0 for none."""
        cdef Topic topic = self.topics.get(name)
        return 0 if topic is None else topic.count

    def slot(self, partition):
        """Return what waits for a partition that was added."""
        cdef Topic topic = self.topics[partition.topic]
        return topic.slots[<Py_ssize_t?>partition.partition]

    def send(
        self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None
    ):
        """Take a record and return its future; where that is refused, leave it to the detour."""
        cdef int refusal = 0
        cdef RecordFuture future = self.put(
            topic, value, key, headers, partition, timestamp_ms, False, &refusal
        )
        if refusal:
            return self.detour(refusal, topic, value, key, headers, partition, timestamp_ms)
        return future

    def append(
        self,
        topic,
        value=None,
        key=None,
        headers=None,
        partition=None,
        timestamp_ms=None,
        bint in_turn=False,
    ):
        """Take a record and return its future, or say why not."""
        cdef int refusal = 0
        cdef RecordFuture future = self.put(
            topic, value, key, headers, partition, timestamp_ms, in_turn, &refusal
        )
        return refusal if refusal else future

    cdef RecordFuture put(
        self, object topic, object value, object key, object headers, object partition,
        object timestamp_ms, bint in_turn, int* refusal,
    ):
        cdef Field key_field, value_field
        cdef Headers head
        cdef bytearray encoded = None
        cdef int64_t index = 0
        cdef int64_t target = -1
        cdef int64_t timestamp
        cdef PendingBatch batch
        cdef RecordFuture future
        if not (isinstance(topic, str) and is_plain(key) and is_plain(value)):
            refusal[0] = TYPE
            return None
        head.count = head.size = 0
        head.shown_size = -1
        head.data = NULL
        if headers is not None and headers != []:
            encoded = self.read_headers(headers, &head)
            if encoded is None:
                refusal[0] = TYPE
                return None
        if partition is not None:
            if not isinstance(partition, int):
                refusal[0] = TYPE
                return None
            target = <int64_t>partition
            if target < 0:
                refusal[0] = PARTITION
                return None
        if timestamp_ms is None:
            timestamp = self.now()
        elif isinstance(timestamp_ms, int):
            timestamp = <int64_t>timestamp_ms
        else:
            refusal[0] = TYPE
            return None
        value_field.held = False
        borrow(key, &key_field)
        try:
            borrow(value, &value_field)
            batch = self.place(
                topic, timestamp, &key_field, &value_field, &head, target, in_turn, &index, refusal
            )
            if batch is not None:
                future = RecordFuture.__new__(RecordFuture)
                future.batch = batch
                future.index = index
                future.timestamp = timestamp
                future.key_size = key_field.size
                future.value_size = value_field.size
                future.header_size = head.shown_size
        finally:
            give_back(&key_field)
            give_back(&value_field)
        if self.changed and not self.signalled:
            self.signalled = True
            self.wake()
        return future if batch is not None else None

    cdef bytearray read_headers(self, object headers, Headers* head):
        """Return headers as they stand in a record, or None if they are no pairs."""
        cdef bytearray encoded
        cdef tuple pairs
        cdef Field field
        if not isinstance(headers, (list, tuple)):
            return None
        pairs = tuple(headers)
        head.shown_size = 0 if pairs else -1
        for pair in pairs:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
                return None
            if not (isinstance(pair[0], str) and is_plain(pair[1])):
                return None
            borrow(pair[1], &field)
            head.shown_size += len((<str>pair[0]).encode("utf-8")) + max(field.size, 0)
            give_back(&field)
        encoded = encode_headers(pairs)
        head.count = len(pairs)
        head.size = PyByteArray_GET_SIZE(encoded)
        head.data = PyByteArray_AS_STRING(encoded)
        return encoded

    cdef int64_t now(self) except? -1:
        cdef timespec time
        if self.clock is not None:
            return <int64_t>self.clock()
        clock_gettime(CLOCK_REALTIME, &time)
        return <int64_t>time.tv_sec * 1000 + time.tv_nsec // 1000000

    cdef PendingBatch place(
        self,
        object name,
        int64_t timestamp,
        Field* key,
        Field* value,
        Headers* head,
        int64_t target,
        bint in_turn,
        int64_t* index,
        int* refusal,
    ):
        """Encode a record into a batch of its partition; return that, and set its place there."""
        cdef Topic topic
        cdef PendingPartition slot
        cdef PendingBatch batch, fresh
        cdef int64_t body, size
        cdef bint sticky
        cdef PyObject* found
        if self.closed:
            refusal[0] = CLOSED
            return None
        if key.size < 0 and value.size < 0:
            refusal[0] = EMPTY
            return None
        found = PyDict_GetItem(self.topics, name)
        if found is NULL or (<Topic>found).count == 0:
            refusal[0] = TOPIC
            return None
        topic = <Topic>found
        body = body_size(0, 0, key, value, head.count, head.size)
        size = unsigned_size(<uint64_t>body << 1) + body
        if HEADER_SIZE + size > self.record_size_max:
            refusal[0] = SIZE
            return None
        sticky = target < 0 and (key.size < 0 or self.ignore_keys)
        if sticky:
            target = self.sticky_partition(topic, size)
        elif target < 0:
            target = (hash_bytes(key.data, key.size) & 0x7FFFFFFF) % topic.count
        if target >= topic.count:
            refusal[0] = PARTITION
            return None
        slot = <PendingPartition>PyList_GET_ITEM(topic.slots, target)
        while True:
            batch = slot.open
            if batch is not None:
                index[0] = batch.put(timestamp, key, value, head.count, head.data, head.size)
                if index[0] >= 0:
                    if batch.used >= self.batch_size and not batch.full:
                        batch.full = True
                        self.note(slot)
                    break
                self.close(slot)
            if not self.reserve(max(HEADER_SIZE + size, self.batch_size), in_turn):
                refusal[0] = MEMORY
                return None
            fresh = self.new_batch(slot, max(HEADER_SIZE + size, self.batch_size))
            if slot.open is None:
                slot.open = fresh
                self.note(slot)
            else:  # another thread was let in and has begun one
                self.give_up(fresh)
        if sticky:
            topic.sticky_bytes += size
        return batch

    cdef int64_t sticky_partition(self, Topic topic, int64_t size) except -1:
        """Stay with a partition for a batch's bytes, and at most for two (KIP-794)."""
        cdef PendingBatch batch
        if topic.sticky >= 0 and (
            HEADER_SIZE + topic.sticky_bytes + size + DELTAS_MAX > self.batch_size
        ):
            batch = (<PendingPartition>PyList_GET_ITEM(topic.slots, topic.sticky)).open
            if (
                batch is None
                or topic.sticky_bytes >= 2 * self.batch_size
                or batch.used + size + DELTAS_MAX > self.batch_size
            ):
                topic.sticky = -1
        if topic.sticky < 0:
            topic.sticky = <int64_t>self.choose(topic.name) % topic.count
            topic.sticky_bytes = 0
        return topic.sticky

    cdef PendingBatch new_batch(self, PendingPartition slot, Py_ssize_t charge):
        cdef PendingBatch batch = PendingBatch.__new__(PendingBatch)
        batch.begin(self, slot.partition)
        batch.charge = batch.capacity = charge
        if charge == self.batch_size and self.pool:
            batch.buffer = self.pool.pop()
        else:
            batch.buffer = bytearray()
            PyByteArray_Resize(batch.buffer, charge)
        return batch

    cdef bint reserve(self, int64_t size, bint in_turn):
        if self.waiting and not in_turn:
            return False
        if self.in_use + size > self.memory and self.in_use > 0:
            return False  # a single batch may be larger than all memory: it would never fit
        self.in_use += size
        while self.pool and self.in_use + len(self.pool) * self.batch_size > self.memory:
            self.pool.pop()
        return True

    cdef bint grow(self, PendingBatch batch, Py_ssize_t size) noexcept:
        """Give a batch that could not be sent yet more room, if it may grow so far."""
        cdef Py_ssize_t capacity = min(max(2 * batch.capacity, size), self.batch_size_max)
        cdef Py_ssize_t more = capacity - batch.capacity
        if self.waiting or size > capacity or self.in_use + more > self.memory:
            return False
        try:
            PyByteArray_Resize(batch.buffer, capacity)
        except MemoryError:
            return False
        self.in_use += more
        batch.capacity = capacity
        batch.charge += more
        return True

    cdef void give_up(self, PendingBatch batch):
        self.in_use -= batch.charge
        if batch.charge == self.batch_size:
            self.pool.append(batch.buffer)
        batch.charge = 0
        batch.buffer = None

    cdef void close(self, PendingPartition slot):
        if slot.open is not None:
            slot.closed.append(slot.open)
            slot.open = None
            self.note(slot)

    cdef void note(self, PendingPartition slot):
        if not slot.noted:
            slot.noted = True
            self.changed.append(slot)

    def append_many(
        self, topic, rows, Py_ssize_t start, list segments, partition=None, bint in_turn=False
    ):
        """Take rows from `start` on: values, or (key, value[, headers[, timestamp[, partition]]]).

        Return the first row that was not taken, and why (0 if all were). Where the rows ended up
        is added to `segments`. Only the first row is in turn: a long call must not keep others out.
        """
        cdef int refusal = 0
        cdef Py_ssize_t index = start
        cdef Py_ssize_t stop = len(rows)
        cdef int64_t common = -1
        if partition is not None:
            common = <int64_t?>partition
            if common < 0:
                return start, PARTITION
        while index < stop:
            if not self.put_row(topic, rows[index], common, segments, in_turn, &refusal):
                break
            in_turn = False
            index += 1
        if self.changed and not self.signalled:
            self.signalled = True
            self.wake()
        return index, refusal

    cdef bint put_row(
        self,
        object topic,
        object row,
        int64_t target,
        list segments,
        bint in_turn,
        int* refusal,
    ) except -1:
        cdef Field key_field, value_field
        cdef Headers head
        cdef bytearray encoded
        cdef object key = None
        cdef object value = row
        cdef Py_ssize_t size = 0
        cdef int64_t place = 0
        cdef int64_t timestamp
        cdef PendingBatch batch
        if not PyBytes_CheckExact(row) and isinstance(row, (tuple, list)):
            size = len(row)
            if not 2 <= size <= 5:
                refusal[0] = TYPE
                return False
            key = row[0]
            value = row[1]
        if not (isinstance(topic, str) and is_plain(key) and is_plain(value)):
            refusal[0] = TYPE
            return False
        head.count = head.size = 0
        head.shown_size = -1
        head.data = NULL
        if size > 2 and row[2] is not None:
            encoded = self.read_headers(row[2], &head)
            if encoded is None:
                refusal[0] = TYPE
                return False
        if size > 3 and row[3] is not None:
            if not isinstance(row[3], int):
                refusal[0] = TYPE
                return False
            timestamp = <int64_t>row[3]
        else:
            timestamp = self.now()
        if size > 4 and row[4] is not None:
            if not isinstance(row[4], int):
                refusal[0] = TYPE
                return False
            target = <int64_t>row[4]
            if target < 0:
                refusal[0] = PARTITION
                return False
        value_field.held = False
        borrow(key, &key_field)
        try:
            borrow(value, &value_field)
            batch = self.place(
                topic, timestamp, &key_field, &value_field, &head, target, in_turn, &place, refusal
            )
        finally:
            give_back(&key_field)
            give_back(&value_field)
        if batch is None:
            return False
        batch.note_segment(segments, place)
        return True

    def append_columns(
        self,
        topic,
        timestamps,
        keys,
        values,
        partitions,
        Py_ssize_t start,
        Py_ssize_t stop,
        list segments,
        partition=None,
        bint in_turn=False,
    ):
        """Take the rows start..stop of Arrow's buffers, as `append_many` does.

        `timestamps` holds int64 values and `partitions` int32 ones; a negative one is for the
        accumulator to choose. A column is validity bits (or None), int32 offsets and data.
        """
        cdef Cells key_cells, value_cells
        cdef Field times, targets, key, value
        cdef Headers head
        cdef int32_t row_target
        cdef int64_t common = -1 if partition is None else <int64_t?>partition
        cdef int64_t target, timestamp, now
        cdef int64_t place = 0
        cdef int refusal = 0
        cdef Py_ssize_t index = start
        cdef PendingBatch batch
        head.count = head.size = 0
        head.shown_size = -1
        head.data = NULL
        key_cells.present = value_cells.present = False
        times.held = targets.held = False
        if start < 0:
            raise column_range()
        now = self.now()
        try:
            borrow(timestamps, &times)
            borrow(partitions, &targets)
            borrow_cells(keys, &key_cells)
            borrow_cells(values, &value_cells)
            if times.size >= 0 and stop > times.size // 8:
                raise column_range()
            if targets.size >= 0 and stop > targets.size // 4:
                raise column_range()
            while index < stop:
                if not (
                    read_cell(&key_cells, index, &key) and read_cell(&value_cells, index, &value)
                ):
                    raise column_range()
                timestamp = -1
                if times.size >= 0:
                    memcpy(&timestamp, times.data + 8 * index, 8)
                if timestamp < 0:
                    timestamp = now
                target = common
                if targets.size >= 0:
                    memcpy(&row_target, targets.data + 4 * index, 4)
                    if row_target >= 0:
                        target = row_target
                batch = self.place(
                    topic, timestamp, &key, &value, &head, target, in_turn, &place, &refusal
                )
                if batch is None:
                    break
                in_turn = False
                batch.note_segment(segments, place)
                index += 1
        finally:
            give_back(&times)
            give_back(&targets)
            give_back_cells(&key_cells)
            give_back_cells(&value_cells)
        if self.changed and not self.signalled:
            self.signalled = True
            self.wake()
        return index, refusal

    def adopt(self, partition, records, bint in_turn=False):
        """Take a whole batch that was built elsewhere, or say why not."""
        cdef Topic topic
        cdef PendingPartition slot
        cdef PendingBatch batch
        if self.closed:
            return CLOSED
        topic = self.topics.get(partition.topic)
        if topic is None or topic.count == 0:
            return TOPIC
        if not 0 <= <int64_t?>partition.partition < topic.count:
            return PARTITION
        if len(records) > self.record_size_max:
            return SIZE
        batch = PendingBatch(self, partition, records)
        if not self.reserve(batch.used, in_turn):
            return MEMORY
        batch.charge = batch.used
        slot = topic.slots[<Py_ssize_t?>partition.partition]
        self.close(slot)
        slot.closed.append(batch)
        self.note(slot)
        if not self.signalled:
            self.signalled = True
            self.wake()
        return batch

    def collect(self):
        """Return the partitions with a new batch, open or closed, since this was last asked."""
        cdef PendingPartition slot
        cdef list fresh = []
        cdef list changed = self.changed
        self.changed = fresh
        for slot in changed:
            slot.noted = False
        self.signalled = False
        return changed

    def take(self, PendingPartition slot, bint with_open=False):
        """Return the full batches of a partition, and the open one if asked, and keep none."""
        cdef list fresh = []
        cdef list taken
        if with_open:
            self.close(slot)
        taken = slot.closed
        slot.closed = fresh
        return taken

    def has_room(self, int64_t size):
        """Tell whether a batch of this size could be begun."""
        return self.in_use + max(size, self.batch_size) <= self.memory

    cdef int free(self, PendingBatch batch) except -1:
        """Take back the memory of a batch that is done."""
        cdef bytearray buffer = batch.buffer
        batch.buffer = None
        self.in_use -= batch.charge
        if batch.charge == self.batch_size and buffer is not None:
            self.pool.append(buffer)
        batch.charge = 0
        if self.on_room is not None:
            self.on_room()
        return 0


cdef inline bint is_plain(object field):
    return (
        field is None
        or PyBytes_CheckExact(field)
        or isinstance(field, (bytes, bytearray, memoryview))
    )
