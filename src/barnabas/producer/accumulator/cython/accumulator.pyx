"""The open batches of all partitions; see the Python twin.

A call of `append` is one critical section under the interpreter's lock, from the look at the open
batch to the note of the new record: between them nothing runs that could let another thread in or
start the garbage collector. The one thing that may, making the object of a new batch, comes first,
and the look is repeated after it.
"""

cimport cython
from cpython.bytes cimport PyBytes_CheckExact
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from barnabas.kernels.contract import column_range
from barnabas.kernels.cython.fields cimport (
    Cells,
    Field,
    body_size,
    borrow,
    borrow_cells,
    give_back,
    give_back_cells,
    read_cell,
)
from barnabas.kernels.cython.layout cimport unsigned_size
from barnabas.kernels.cython.murmur2 cimport hash_bytes
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator.cython.batch cimport PendingBatch
from barnabas.producer.accumulator.cython.buffer_pool cimport BufferPool
from barnabas.producer.accumulator.cython.headers cimport (
    Headers,
    is_plain,
    no_headers,
    read_headers,
)
from barnabas.producer.accumulator.refusal import Refusal

cdef enum:
    HEADER_SIZE = 61
    SIZE_MAX = 0x7FFFFFFF
    DELTAS_MAX = 16  # what the index in a batch may add to the size of a record

cdef object TOPIC = Refusal.TOPIC
cdef object PARTITION = Refusal.PARTITION
cdef object MEMORY = Refusal.MEMORY
cdef object SIZE = Refusal.SIZE
cdef object TYPE = Refusal.TYPE
cdef object EMPTY = Refusal.EMPTY
cdef object CLOSED = Refusal.CLOSED


@cython.final
cdef class PendingPartition:
    """The batch of a partition that is being filled, and those that are full."""

    def __init__(self, partition):
        self.partition = partition
        self.closed = []


@cython.final
cdef class Topic:
    """The partitions of a topic, and the one where records without a key go for now."""


@cython.final
cdef class Accumulator:
    """The open batches of all partitions."""

    def __init__(
        self,
        BufferPool pool,
        *,
        wake,
        choose,
        wait,
        int64_t record_size_max=SIZE_MAX,
        bint ignore_keys=False,
        clock=None,
    ):
        """Prepare to take records.

        `wake` is called when there is something new for the sender, `choose` names the partition
        for the next records without a key, `wait` blocks until a batch is done, `clock` returns
        the time in milliseconds (default: the system's).
        """
        self.pool = pool
        self.wake = wake
        self.choose = choose
        self.wait = wait
        self.record_size_max = record_size_max
        self.ignore_keys = ignore_keys
        self.clock = clock
        self.topics = {}
        self.changed = []

    def add_topic(self, str name, int64_t count):
        """Accept records for the partitions 0 to count - 1 of a topic from now on."""
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
        """Reject records for a topic until it is added again."""
        cdef Topic topic = self.topics.get(name)
        if topic is not None:
            topic.count = 0

    def unstick(self, str name):
        """Choose another partition for records without a key."""
        cdef Topic topic = self.topics.get(name)
        if topic is not None:
            topic.sticky = -1

    def partition_count(self, name):
        """Return how many partitions of a topic are known; 0 for none."""
        cdef Topic topic = self.topics.get(name)
        return 0 if topic is None else topic.count

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
        """Append a record and return its future, or why it was rejected."""
        return self.put(topic, value, key, headers, partition, timestamp_ms, in_turn)

    cdef object put(
        self, object topic, object value, object key, object headers, object partition,
        object timestamp_ms, bint in_turn,
    ):
        cdef Field key_field, value_field
        cdef Headers head
        cdef bytearray encoded = None
        cdef int64_t target = -1
        cdef int64_t timestamp
        cdef object taken
        if not (isinstance(topic, str) and is_plain(key) and is_plain(value)):
            return TYPE
        no_headers(&head)
        if headers is not None and headers != []:
            encoded = read_headers(headers, &head)
            if encoded is None:
                return TYPE
        if partition is not None:
            if not isinstance(partition, int):
                return TYPE
            target = <int64_t>partition
            if target < 0:
                return PARTITION
        if timestamp_ms is None:
            timestamp = self.now()
        elif isinstance(timestamp_ms, int):
            timestamp = <int64_t>timestamp_ms
        else:
            return TYPE
        value_field.held = False
        borrow(key, &key_field)
        try:
            borrow(value, &value_field)
            taken = self.place(topic, timestamp, &key_field, &value_field, &head, target, in_turn)
            if isinstance(taken, PendingBatch):
                taken = (<PendingBatch>taken).last_future(
                    timestamp, key_field.size, value_field.size, head.shown_size
                )
        finally:
            give_back(&key_field)
            give_back(&value_field)
        self.wake_sender()
        return taken

    cdef int64_t now(self) except? -1:
        cdef timespec time
        if self.clock is not None:
            return <int64_t>self.clock()
        clock_gettime(CLOCK_REALTIME, &time)
        return <int64_t>time.tv_sec * 1000 + time.tv_nsec // 1000000

    cdef object place(
        self,
        object name,
        int64_t timestamp,
        Field* key,
        Field* value,
        Headers* head,
        int64_t target,
        bint in_turn,
    ):
        """Encode a record at the end of a batch and return the batch, or the refusal."""
        cdef Topic topic
        cdef PendingPartition slot
        cdef PendingBatch batch, fresh
        cdef int64_t body, size
        cdef Py_ssize_t charge
        cdef bint sticky
        cdef PyObject* found
        if self.closed:
            return CLOSED
        if key.size < 0 and value.size < 0:
            return EMPTY
        found = PyDict_GetItem(self.topics, name)
        if found is NULL or (<Topic>found).count == 0:
            return TOPIC
        topic = <Topic>found
        body = body_size(0, 0, key, value, head.count, head.size)
        size = unsigned_size(<uint64_t>body << 1) + body
        if HEADER_SIZE + size > self.record_size_max:
            return SIZE
        sticky = target < 0 and (key.size < 0 or self.ignore_keys)
        if sticky:
            target = self.sticky_partition(topic, size)
        elif target < 0:
            target = (hash_bytes(key.data, key.size) & 0x7FFFFFFF) % topic.count
        if target >= topic.count:
            return PARTITION
        slot = <PendingPartition>PyList_GET_ITEM(topic.slots, target)
        while True:
            batch = slot.open
            if batch is not None:
                if batch.put(timestamp, key, value, head.count, head.data, head.size) >= 0:
                    if batch.used >= self.pool.batch_size and not batch.full:
                        batch.full = True
                        self.note(slot)
                    break
                self.close(slot)
            charge = max(HEADER_SIZE + size, self.pool.batch_size)
            if not self.pool.reserve(charge, in_turn):
                return MEMORY
            fresh = self.new_batch(slot, charge)
            if slot.open is None:
                slot.open = fresh
                self.note(slot)
            else:  # another thread was let in and has begun one
                self.pool.give_back(fresh.buffer, charge)
        if sticky:
            topic.sticky_bytes += size
        return batch

    cdef int64_t sticky_partition(self, Topic topic, int64_t size) except -1:
        """Return the sticky partition; switch after a batch's bytes, at most two (KIP-794)."""
        cdef PendingBatch batch
        if topic.sticky >= 0 and (
            HEADER_SIZE + topic.sticky_bytes + size + DELTAS_MAX > self.pool.batch_size
        ):
            batch = (<PendingPartition>PyList_GET_ITEM(topic.slots, topic.sticky)).open
            if (
                batch is None
                or topic.sticky_bytes >= 2 * self.pool.batch_size
                or batch.used + size + DELTAS_MAX > self.pool.batch_size
            ):
                topic.sticky = -1
        if topic.sticky < 0:
            topic.sticky = <int64_t>self.choose(topic.name) % topic.count
            topic.sticky_bytes = 0
        return topic.sticky

    cdef PendingBatch new_batch(self, PendingPartition slot, Py_ssize_t charge):
        cdef PendingBatch batch = PendingBatch.__new__(PendingBatch)
        batch.begin(self.pool, self.wait, slot.partition)
        batch.charge = batch.capacity = charge
        batch.buffer = self.pool.take(charge)
        return batch

    cdef void close(self, PendingPartition slot):
        if slot.open is not None:
            slot.closed.append(slot.open)
            slot.open = None
            self.note(slot)

    cdef void note(self, PendingPartition slot):
        if not slot.noted:
            slot.noted = True
            self.changed.append(slot)

    cdef int wake_sender(self) except -1:
        """Wake the sender, once until it collects."""
        if self.changed and not self.signalled:
            self.signalled = True
            self.wake()
        return 0

    def append_many(
        self, topic, rows, Py_ssize_t start, list segments, partition=None, bint in_turn=False
    ):
        """Append rows from `start` on: values, or (key, value[, headers[, timestamp[,
        partition]]]).

        Return the first row that was not appended, and why (None if all were). Their positions are
        added to `segments`. Only the first row is in turn: a long call must not starve others.
        """
        cdef object refusal = None
        cdef Py_ssize_t index = start
        cdef Py_ssize_t stop = len(rows)
        cdef int64_t common = -1
        if partition is not None:
            common = <int64_t?>partition
            if common < 0:
                return start, PARTITION
        while index < stop:
            refusal = self.put_row(topic, rows[index], common, segments, in_turn)
            if refusal is not None:
                break
            in_turn = False
            index += 1
        self.wake_sender()
        return index, refusal

    cdef object put_row(
        self, object topic, object row, int64_t target, list segments, bint in_turn
    ):
        """Take a row, or return why it is refused."""
        cdef Field key_field, value_field
        cdef Headers head
        cdef bytearray encoded
        cdef object key = None
        cdef object value = row
        cdef object taken
        cdef Py_ssize_t size = 0
        cdef int64_t timestamp
        if not PyBytes_CheckExact(row) and isinstance(row, (tuple, list)):
            size = len(row)
            if not 2 <= size <= 5:
                return TYPE
            key = row[0]
            value = row[1]
        if not (isinstance(topic, str) and is_plain(key) and is_plain(value)):
            return TYPE
        no_headers(&head)
        if size > 2 and row[2] is not None:
            encoded = read_headers(row[2], &head)
            if encoded is None:
                return TYPE
        if size > 3 and row[3] is not None:
            if not isinstance(row[3], int):
                return TYPE
            timestamp = <int64_t>row[3]
        else:
            timestamp = self.now()
        if size > 4 and row[4] is not None:
            if not isinstance(row[4], int):
                return TYPE
            target = <int64_t>row[4]
            if target < 0:
                return PARTITION
        value_field.held = False
        borrow(key, &key_field)
        try:
            borrow(value, &value_field)
            taken = self.place(topic, timestamp, &key_field, &value_field, &head, target, in_turn)
            if not isinstance(taken, PendingBatch):
                return taken
            (<PendingBatch>taken).note_last(segments)
        finally:
            give_back(&key_field)
            give_back(&value_field)
        return None

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
        """Append the rows start..stop of Arrow buffers, like `append_many`.

        `timestamps` holds int64 values and `partitions` int32 ones; a negative one is for the
        accumulator to choose. A column is validity bits (or None), int32 offsets and data.
        """
        cdef Cells key_cells, value_cells
        cdef Field times, targets, key, value
        cdef Headers head
        cdef int32_t row_target
        cdef int64_t common = -1 if partition is None else <int64_t?>partition
        cdef int64_t target, timestamp, now
        cdef object taken
        cdef object refusal = None
        cdef Py_ssize_t index = start
        no_headers(&head)
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
                taken = self.place(topic, timestamp, &key, &value, &head, target, in_turn)
                if not isinstance(taken, PendingBatch):
                    refusal = taken
                    break
                in_turn = False
                (<PendingBatch>taken).note_last(segments)
                index += 1
        finally:
            give_back(&times)
            give_back(&targets)
            give_back_cells(&key_cells)
            give_back_cells(&value_cells)
        self.wake_sender()
        return index, refusal

    def adopt(self, partition, records, bint in_turn=False):
        """Add a complete batch that the caller built; return it, or why it was rejected."""
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
        batch = PendingBatch(self.pool, self.wait, partition, records)
        if not self.pool.reserve(batch.used, in_turn):
            return MEMORY
        batch.charge = batch.used
        slot = topic.slots[<Py_ssize_t?>partition.partition]
        self.close(slot)
        slot.closed.append(batch)
        self.note(slot)
        self.wake_sender()
        return batch

    def collect(self):
        """Return the partitions with a new batch, open or closed, since the last call."""
        cdef PendingPartition slot
        cdef list fresh = []
        cdef list changed = self.changed
        self.changed = fresh
        for slot in changed:
            slot.noted = False
        self.signalled = False
        return changed

    def take(self, PendingPartition slot, bint with_open=False):
        """Remove and return the full batches of a partition, and on request the open one."""
        cdef list fresh = []
        cdef list taken
        if with_open:
            self.close(slot)
        taken = slot.closed
        slot.closed = fresh
        return taken
