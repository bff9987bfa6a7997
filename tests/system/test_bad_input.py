"""Whatever arrives on a socket: one log line at most, its connection closed or an error answered.

Never an unhandled exception, never a success that was not asked for, and whoever else is connected
is served as before.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.requests import sample_request
from tests.unit.broker.serving import (
    TIMESTAMP,
    Serving,
    Wire,
    batch_of,
    create_topic,
    decoded,
    fetch,
    produce,
    produce_request,
    values_of,
    wait_for,
)
from tests.unit.wire.samples import random_message

from barnabas.broker.handlers import served_apis
from barnabas.broker.network.router import Served
from barnabas.kernels import crc32c
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.records.batch import Record
from barnabas.records.compression import Codec, compress
from barnabas.records.legacy import encode_message
from barnabas.testing.process import ProcessRunner
from barnabas.wire.apis import APIS
from barnabas.wire.codec import decode
from barnabas.wire.frame import request_frame
from barnabas.wire.header import decode_request_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest

SERVED = list(served_apis().values())
FUZZ_FRAMES = int(os.environ.get("BARNABAS_FUZZ_FRAMES", "1500"))
FUZZ_SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "1"))


@pytest.fixture
def witness(serving: Serving) -> Iterator[Wire]:
    """Another client, which must be served before and after."""
    with serving.connect() as other:
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        yield other
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
    serving.expect_no_lines()


def framed(payload: bytes) -> bytes:
    """Put the right size before a payload."""
    return struct.pack(">i", len(payload)) + payload


class TestFrames:
    @pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1, 100 * 1024 * 1024 + 1])
    def test_impossible_sizes(self, serving: Serving, witness: Wire, size: int) -> None:
        """They close the connection at once, with one line that names the bound."""
        with serving.connect() as bad:
            bad.socket.sendall(struct.pack(">i", size) + b"\0" * 20)
            bad.expect_close()
        serving.expect_line("socket.request.max.bytes")

    @pytest.mark.parametrize(
        ("data", "hint"),
        [
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "an HTTP request"),
            (b"POST /topics HTTP/1.1\r\n\r\n", "an HTTP request"),
            (bytes.fromhex("16030100c8010000c40303") + bytes(200), "a TLS handshake"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "first bytes 53 53 48"),
        ],
    )
    def test_other_protocols(self, serving: Serving, witness: Wire, data: bytes, hint: str) -> None:
        """The line says what it was, so that whoever reads the log finds the misconfiguration."""
        with serving.connect() as bad:
            bad.socket.sendall(data)
            bad.expect_close()
        serving.expect_line(hint)

    def test_half_a_frame_costs_what_was_sent(self, serving: Serving, witness: Wire) -> None:
        """A huge announced size allocates nothing."""
        half = [serving.connect() for _ in range(50)]
        for each in half:
            each.socket.sendall(struct.pack(">i", 100 * 1024 * 1024) + b"x" * 1000)
        listener = serving.broker.parts.network._listeners[0]

        def buffers() -> list[int]:
            """Return the sizes of the buffers that hold all that was sent."""
            return [len(each._buffer) for each in listener.connections if each._end == 4 + 1000]

        wait_for(lambda: len(serving.inside(buffers)) == 50, "all of it has arrived")
        assert max(serving.inside(buffers)) <= 64 * 1024
        for each in half:
            each.socket.close()

    def test_a_frame_in_single_bytes(self, serving: Serving, witness: Wire) -> None:
        """How a frame is cut into packets does not matter."""
        frame = request_frame(ApiVersionsRequest(), 0, 5, "slow")
        with serving.connect() as slow:
            for index in range(len(frame)):
                slow.socket.sendall(frame[index : index + 1])
            assert slow.receive(ApiVersionsRequest, 0)[0] == 5


class TestRequests:
    @pytest.mark.parametrize("served", SERVED, ids=lambda served: served.api.name)
    def test_cut_at_every_byte(self, served: Served, serving: Serving, witness: Wire) -> None:
        """A request that ends too early, whatever its version, closes its connection alone."""
        before = len(serving.broker.partitions)
        for version in range(served.first_version, served.last_version + 1):
            request = sample_request(served.api.name, version, "cut", b"c" * 16)
            payload = request_frame(request, version, 1, "cut")[4:]
            for end in range(1, len(payload)):
                with serving.connect() as bad:
                    bad.socket.sendall(framed(payload[:end]))
                    assert bad.read_frame() is None, f"v{version} cut at {end} was answered"
            lines = serving.lines.of()
            assert len(lines) == len(payload) - 1, "each has one line"
            assert all("connection from 127.0.0.1" in line for line in lines)
            serving.lines.clear()
        assert len(serving.broker.partitions) == before

    def test_unknown_apis(self, serving: Serving, witness: Wire) -> None:
        """A key that nobody has, or that this broker does not serve, closes the connection."""
        unserved = [each.key for each in APIS if each.key not in served_apis()]
        for key in (-1, 93, 999, 32767, -32768, *unserved):
            with serving.connect() as bad:
                bad.socket.sendall(framed(struct.pack(">hhih", key, 0, 1, -1) + bytes(20)))
                bad.expect_close()
            serving.expect_line("connection from 127.0.0.1")

    @pytest.mark.parametrize("served", SERVED, ids=lambda served: served.api.name)
    def test_unknown_versions(self, served: Served, serving: Serving, witness: Wire) -> None:
        """A version that is not served closes the connection; of ApiVersions it is told in v0."""
        for version in (-1, served.last_version + 1, 99, 32767):
            with serving.connect() as bad:
                head = struct.pack(">hhih", served.api.key, version, 77, -1)
                bad.socket.sendall(framed(head + bytes(30)))
                if served.api.name != "ApiVersions":
                    bad.expect_close()
                    serving.expect_line(f"version {version} is not supported")
                    continue
                frame = bad.read_frame()
                assert frame is not None
                assert frame[:4] == struct.pack(">i", 77)
                answer = decoded(ApiVersionsResponse, frame[4:], 0)
                assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
                ((key, first, last),) = [
                    (each.api_key, each.min_version, each.max_version) for each in answer.api_keys
                ]
                assert (key, first, last) == (18, served.first_version, served.last_version)
                assert bad.ask(ApiVersionsRequest(), 0).error_code == 0, "the client may go on"

    def test_software_names(self, serving: Serving, witness: Wire) -> None:
        """What is no software name is told with a normal answer."""
        for name in ("", "a b", "-x", "x-", "ü", "a" * 3 + "\n"):
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            response = witness.ask(request, 3)
            assert (response.error_code, response.api_keys) == (42, [])
        good = ApiVersionsRequest(client_software_name="a-b.c", client_software_version="1.0")
        assert witness.ask(good, 3).error_code == 0

    def test_absurd_counts(self, serving: Serving, witness: Wire) -> None:
        """A count of two billion elements in a small frame is not believed."""
        for version, count in ((1, struct.pack(">i", 2**31 - 1)), (12, b"\xff\xff\xff\xff\x07")):
            payload = request_frame(MetadataRequest(topics=[]), version, 1, "x")[4:]
            with serving.connect() as bad:  # the last four bytes begin with the count
                bad.socket.sendall(framed(payload[:-4] + count + bytes(4)))
                bad.expect_close()
            serving.expect_line("unreadable request")

    def test_invalid_text(self, serving: Serving, witness: Wire) -> None:
        """Bytes that are no UTF-8 where text should be."""
        payload = request_frame(ApiVersionsRequest(), 0, 1, "abc")[4:].replace(b"abc", b"\xff\xfe!")
        with serving.connect() as bad:
            bad.socket.sendall(framed(payload))
            bad.expect_close()
        serving.expect_line("unreadable request")


def spoiled(batch: bytes, position: int, form: str, value: int, *, seal: bool = True) -> bytes:
    """Return a batch with one header field changed, and a CRC that fits unless `seal` is off."""
    data = bytearray(batch)
    struct.pack_into(form, data, position, value)
    if seal:
        struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


GOOD = batch_of(["one", "two"])


def compressed(codec: Codec, content: bytes, count: int = 1) -> bytes:
    """Return a batch whose compressed part is given, whatever that is."""
    data = bytearray(batch_of(["x"] * count)[:61]) + content
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, codec)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


class TestBatches:
    @pytest.fixture
    def topic(self, serving: Serving) -> str:
        name = f"batches-{time.monotonic_ns()}"
        with serving.connect() as wire:
            create_topic(wire, name)
        return name

    @pytest.mark.parametrize(
        ("batch", "codes"),
        [
            (spoiled(GOOD, 17, ">I", 12345, seal=False), {2}),
            (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), {2}),
            (spoiled(GOOD, 16, ">b", 3), {2, 87}),
            (spoiled(GOOD, 16, ">b", -1), {2, 87}),
            (spoiled(GOOD, 16, ">b", 1), {2, 87}),
            (spoiled(GOOD, 57, ">i", 1), {87}),
            (spoiled(GOOD, 57, ">i", 3), {87}),
            (spoiled(GOOD, 57, ">i", 0), {87}),
            (spoiled(GOOD, 57, ">i", -1), {87}),
            (spoiled(GOOD, 57, ">i", 2**31 - 1), {87}),
            (spoiled(GOOD, 23, ">i", 5), {87}),
            (spoiled(GOOD, 23, ">i", -1), {87}),
            (spoiled(GOOD, 23, ">i", 2**31 - 1), {87}),
            (spoiled(GOOD, 0, ">q", 7), {87}),
            (spoiled(GOOD, 0, ">q", -1), {87}),
            (spoiled(GOOD, 8, ">i", 0), {2, 87}),
            (spoiled(GOOD, 8, ">i", -1), {2, 87}),
            (spoiled(GOOD, 8, ">i", 48), {2, 87}),
            (spoiled(GOOD, 8, ">i", len(GOOD) - 13), {2, 87}),
            (spoiled(GOOD, 8, ">i", len(GOOD) - 11), {2, 87}),
            (spoiled(GOOD, 8, ">i", 2**31 - 1), {2, 10, 87}),
            (spoiled(GOOD, 21, ">h", 0x20), {87}),
            (spoiled(GOOD, 21, ">h", 5), {2, 76, 87}),
            (spoiled(GOOD, 21, ">h", 7), {2, 76, 87}),
            (spoiled(GOOD, 51, ">h", -5), {0, 87}),
            (spoiled(spoiled(GOOD, 43, ">q", 5), 53, ">i", -1), {87}),
            (GOOD + GOOD, {87}),
            (GOOD[:60], {2, 87}),
            (GOOD[:17], {2, 87}),
            (GOOD[:16], {87}),
            (b"\0", {87}),
            (bytes(200), {2, 87}),
            (b"\xff" * 200, {2, 87}),
        ],
    )
    def test_bad_headers(
        self, serving: Serving, witness: Wire, topic: str, batch: bytes, codes: set[int]
    ) -> None:
        """Each is refused with a fitting code, nothing of it is appended, the connection lives."""
        result = produce(witness, topic, batch)
        assert result.error_code in codes, ErrorCode.of(result.error_code)
        if result.error_code:
            assert result.base_offset == -1
            assert fetch(witness, topic).high_watermark == 0
        assert produce(witness, topic, GOOD).error_code == 0

    def test_every_flipped_bit(self, serving: Serving, witness: Wire, topic: str) -> None:
        """No single bit of what the CRC covers can be wrong; offset and epoch are not covered."""
        for bit in range(12 * 8, len(GOOD) * 8):
            if 12 <= bit // 8 < 16:
                continue  # the leader epoch is the broker's to set
            data = bytearray(GOOD)
            data[bit // 8] ^= 1 << bit % 8
            assert produce(witness, topic, bytes(data)).error_code in (2, 87), bit
        assert fetch(witness, topic).high_watermark == 0

    def test_every_cut(self, serving: Serving, witness: Wire, topic: str) -> None:
        """A batch that ends too early is refused wherever it ends."""
        for end in range(len(GOOD)):
            assert produce(witness, topic, GOOD[:end]).error_code in (2, 87), end
        assert fetch(witness, topic).high_watermark == 0

    def test_bad_records(self, serving: Serving, witness: Wire, topic: str) -> None:
        """Records that contradict themselves under a CRC that fits."""
        start = 61
        for position in range(start, len(GOOD)):
            for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
                data = bytearray(GOOD)
                data[position] = value
                struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
                result = produce(witness, topic, bytes(data))
                assert result.error_code in (0, 2, 32, 87), (position, value)
        # Whatever was taken can be read again by everyone.
        end = fetch(witness, topic).high_watermark
        read = []
        while len(read) < end:
            read += values_of(fetch(witness, topic, len(read)))
        assert len(read) == end

    @pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
    def test_bad_compression(
        self, serving: Serving, witness: Wire, topic: str, codec: Codec
    ) -> None:
        """Garbage, cut streams and trailing bytes instead of compressed records."""
        records = batch_of(["x"])[61:]
        packed = compress(codec, records)
        contents = [b"", b"\0", b"garbage" * 10, bytes(100), b"\xff" * 100, records]
        contents += [packed[:end] for end in range(len(packed))]
        contents += [compress(codec, b""), compress(codec, b"\xff" * 30)]
        contents += [compress(codec, records[:-1]), compress(codec, records + b"more")]
        for content in contents:
            result = produce(witness, topic, compressed(codec, content))
            assert result.error_code in (2, 87), content[:40]
        assert fetch(witness, topic).high_watermark == 0
        assert produce(witness, topic, compressed(codec, packed)).error_code == 0
        assert values_of(fetch(witness, topic)) == [b"x"]

    @pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
    def test_flipped_compression(
        self, serving: Serving, witness: Wire, topic: str, codec: Codec
    ) -> None:
        """Bytes changed inside compressed data are refused, or give records that can be read."""
        packed = bytearray(compress(codec, batch_of(["some value", "some value"])[61:]))
        source = random.Random(f"{codec}")
        for _ in range(150):
            data = bytearray(packed)
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
            result = produce(witness, topic, compressed(codec, bytes(data), 2))
            assert result.error_code in (0, 2, 32, 87)
        end = fetch(witness, topic).high_watermark
        read: list[Any] = []
        while len(read) < end:
            read += values_of(fetch(witness, topic, len(read)))
        assert len(read) == end

    @pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
    def test_exploding_compression(
        self, serving: Serving, witness: Wire, topic: str, codec: Codec
    ) -> None:
        """A small batch that unpacks to more than a gigabyte is refused before it does so."""
        result = produce(witness, topic, compressed(codec, bomb(codec)))
        assert result.error_code in (2, 10, 87)
        assert fetch(witness, topic).high_watermark == 0

    def test_nested_old_messages(self, serving: Serving, witness: Wire, topic: str) -> None:
        """A wrapper inside a wrapper inside a wrapper, as old formats could be abused."""
        data = encode_message(Record(0, TIMESTAMP, None, b"core", ()), 1)
        for _ in range(30):
            inner = compress(Codec.GZIP, data)
            data = encode_message(Record(0, TIMESTAMP, None, inner, ()), 1, attributes=1)
        assert produce(witness, topic, data, 2).error_code in (2, 87)
        for end in range(len(data)):
            assert produce(witness, topic, data[:end], 2).error_code in (2, 87)
        assert fetch(witness, topic).high_watermark == 0

    @pytest.mark.parametrize("name", ["", ".", "..", "../../etc", "x" * 250, "ü", "a\0b"])
    def test_topic_names(self, serving: Serving, witness: Wire, name: str) -> None:
        """A name that could be a path reaches no file."""
        assert produce(witness, name, GOOD).error_code == 3
        assert fetch(witness, name).error_code == 3


def bomb(codec: Codec) -> bytes:
    """Return about a megabyte or less that unpacks to more than a gigabyte."""
    if codec is Codec.GZIP:
        # After a full flush the packer starts from nothing: the same piece may follow itself.
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
        piece = packer.compress(bytes(4 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
        return start + piece * 250
    if codec is Codec.SNAPPY:
        # The raw format states its size up front: two gigabytes, of which one byte follows.
        return b"\xff\xff\xff\xff\x07" + b"\x00x"
    block = compress(codec, bytes(1 << 20))
    return block * (800_000 // len(block))


def test_fuzzed_frames(serving: Serving, witness: Wire) -> None:
    """Seeded nonsense: whole frames of random bytes, and valid requests with bytes changed.

    BARNABAS_FUZZ_FRAMES makes it longer, BARNABAS_FUZZ_SEED different.
    """
    source = random.Random(FUZZ_SEED)
    with serving.connect() as wire:
        topic_id = create_topic(wire, "fuzz", 2)
    connection: Wire | None = None
    closed = 0
    for number in range(FUZZ_FRAMES):
        served = source.choice(SERVED)
        version = source.randint(served.first_version, served.last_version)
        request = sample_request(served.api.name, version, "fuzz", topic_id)
        payload = bytearray(request_frame(request, version, 1, "f")[4:])
        if source.random() < 0.3:
            head = 8 + 3 + (1 if served.api.is_flexible(version) else 0)
            payload = payload[:head] + source.randbytes(source.randint(0, 60))
        else:
            for _ in range(source.randint(1, 4)):
                payload[source.randrange(4, len(payload))] = source.choice(
                    [0, 1, 127, 128, 255, source.randrange(256)]
                )
        if asks_for_many_partitions(served, version, bytes(payload)):
            continue
        if connection is None:
            connection = serving.connect()
        connection.socket.sendall(framed(bytes(payload)))
        # acks=0 has no answer and fetches may wait: what comes next tells that this one is done.
        connection.send(ApiVersionsRequest(), 0)
        if not reaches_the_end(connection):
            leave(serving, connection)
            connection = None
            closed += 1
        lines = serving.lines.of()
        serving.lines.clear()
        assert len(lines) <= 1, f"frame {number} of seed {FUZZ_SEED}: {bytes(payload).hex()}"
        assert all("connection from 127.0.0.1" in line for line in lines), (number, lines)
    assert closed > 0
    if connection is not None:
        connection.socket.close()


def test_random_requests(serving: Serving, witness: Wire) -> None:
    """Seeded requests that are well formed and make no sense: extremes in every field.

    Whatever they ask for, they get an answer that can be read, or wait; nothing breaks inside.
    """
    source = random.Random(FUZZ_SEED)
    with serving.connect() as wire:
        topic_id = create_topic(wire, "random", 2)
    connection: Wire | None = None
    for number in range(FUZZ_FRAMES // 3):
        served = source.choice(SERVED)
        version = source.randint(served.first_version, served.last_version)
        message = random_message(served.api.request, version, source)
        steer(message, source, topic_id)
        frame = request_frame(message, version, 1, source.choice([None, "", "c", "x" * 500]))
        if asks_for_many_partitions(served, version, frame[4:]):
            continue
        if connection is None:
            connection = serving.connect()
        connection.socket.sendall(frame)
        connection.send(ApiVersionsRequest(), 0)
        if not reaches_the_end(connection):
            leave(serving, connection)
            connection = None
        lines = [line for line in serving.lines.of() if "connection from 127.0.0.1" not in line]
        serving.lines.clear()
        assert not lines, f"request {number} of seed {FUZZ_SEED}: {message!r}: {lines}"
    if connection is not None:
        connection.socket.close()


def test_restart_after_nonsense(tmp_path: Path) -> None:
    """What random requests left behind can be opened again, and described in every version."""
    serving = Serving(tmp_path)
    serving.start()
    source = random.Random(FUZZ_SEED)
    with serving.connect() as wire:
        topic_id = create_topic(wire, "random", 2)
    changing = [
        served
        for served in SERVED
        if served.api.name.startswith(("Alter", "Create", "Incremental", "Produce"))
    ]
    for _ in range(150):
        served = source.choice(changing)
        version = served.last_version
        message = random_message(served.api.request, version, source)
        steer(message, source, topic_id)
        frame = request_frame(message, version, 1, "restart")
        if not asks_for_many_partitions(served, version, frame[4:]):
            with serving.connect() as wire:
                wire.socket.sendall(frame)
                wire.send(ApiVersionsRequest(), 0)
                reaches_the_end(wire)
    with serving.connect() as wire:
        before = {topic.name for topic in wire.ask(MetadataRequest(topics=None), 12).topics}
    serving.stop()
    serving.start()
    with serving.connect() as wire:
        for version in range(1, 14):
            after = wire.ask(MetadataRequest(topics=None), version).topics
            assert {topic.name for topic in after} == before
        assert produce(wire, "random", GOOD).error_code == 0
    serving.stop()


def steer(message: Any, source: random.Random, topic_id: bytes) -> None:
    """Let some names and ids of a random message be those of the topic that exists."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.struct is not None and value is not None:
            for each in value if field.is_array else [value]:
                steer(each, source, topic_id)
        elif source.random() < 0.5:
            if field.name in ("name", "topic", "topic_name", "resource_name") and value is not None:
                setattr(message, field.name, "random")
            elif field.name == "topic_id" and value != bytes(16):
                setattr(message, field.name, topic_id)
            elif field.name in ("partition", "partition_index", "index"):
                setattr(message, field.name, 0)


def asks_for_many_partitions(served: Served, version: int, payload: bytes) -> bool:
    """Tell whether a fuzzed request validly asks for more partitions than a test has time for."""
    if served.api.name not in ("CreateTopics", "CreatePartitions"):
        return False
    try:
        header, position = decode_request_header(payload)
        body: Any = decode(served.api.request, payload, header.api_version, position)[0]
    except RemoteProtocolError:
        return False
    counts = [getattr(topic, "num_partitions", 0) for topic in body.topics]
    counts += [getattr(topic, "count", 0) for topic in body.topics]
    return max(counts, default=0) > 20


def reaches_the_end(connection: Wire) -> bool:
    """Read until the answer to the ApiVersions request comes; False when the connection ends."""
    wanted = struct.pack(">i", connection._correlation) + b"\0\0"
    connection.socket.settimeout(0.1)
    try:
        while True:
            frame = connection.read_frame()
            if frame is None:
                return False
            if frame[:6] == wanted and len(frame) > 100:
                return True
    except TimeoutError:
        return False  # a fetch that waits: the caller closes, which ends it
    finally:
        if connection.socket.fileno() >= 0:
            connection.socket.settimeout(60)


def leave(serving: Serving, connection: Wire) -> None:
    """Close a connection, and wait until the broker has done with all that came on it."""
    own = connection.socket.getsockname()
    connection.socket.close()
    present = serving.broker.parts.network._listeners[0].connections
    serving.wait_inside(
        lambda: all(each._transport.get_extra_info("peername") != own for each in present),
        "the broker has let go of the connection",
    )


def resident_kib(pid: int) -> int:
    """Return a process's resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} is gone")


@pytest.mark.system
def test_thousands_of_garbage_connections(tmp_path: Path) -> None:
    """A broker process does not grow under thousands of bad connections, and serves meanwhile."""
    runner = ProcessRunner()
    address = runner.start(
        {
            "broker.id": "0",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "d"),
            "socket.listen.backlog.size": "4000",  # an overflow costs the attacker seconds
        }
    )
    assert runner._process is not None
    source = random.Random(7)
    good = Wire(address)
    create_topic(good, "t")
    kinds: list[Callable[[], bytes]] = [
        lambda: struct.pack(">i", 0),
        lambda: b"GET / HTTP/1.1\r\n\r\n",
        lambda: framed(source.randbytes(source.randint(1, 5000))),
        lambda: struct.pack(">i", 50 << 20) + source.randbytes(5000),
        lambda: request_frame(ApiVersionsRequest(), 0, 1, "cut")[:-3],
        lambda: request_frame(produce_request("nowhere", GOOD, acks=0), 9, 1, "quiet"),
        lambda: request_frame(MetadataRequest(topics=None), 12, 1, "unread"),
    ]

    def attack(count: int) -> None:
        for number in range(count):
            with socket.create_connection(address, 20) as bad:
                bad.sendall(kinds[number % len(kinds)]())
            if number % 20 == 0:
                assert produce(good, "t", GOOD).error_code == 0

    try:
        attack(500)
        before = resident_kib(runner._process.pid)
        attack(3000)
        wait_for(lambda: good.ask(ApiVersionsRequest(), 0).error_code == 0, "it still serves")
        after = resident_kib(runner._process.pid)
        assert after - before < 4096, f"from {before} KiB to {after} KiB"
    finally:
        good.socket.close()
        runner.stop()
    log = (tmp_path / "d.err").read_text()
    assert "Traceback" not in log
    assert log.count("connection from 127.0.0.1") <= 3500
