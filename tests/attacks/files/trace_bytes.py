"""Writes traces and rings byte by byte, including ones that no recorder would write."""

import ctypes
import struct
import zlib

EVENTS, STACKS, CODE, MODULES, FACTS, END, INDEX = range(1, 8)
DEVICE_ALLOC, DEVICE_FREE, ADDRESS_RESERVE, ADDRESS_FREE = 1, 2, 3, 4
PHYSICAL_CREATE, MAP, UNMAP = 5, 7, 8
BLOCK_ALLOC, BLOCK_FREE, OUT_OF_MEMORY = 32, 33, 34
MEMORY_INFO, ALLOC_REFUSED, PENDING_EVENT, POOL_REWIND, SETTINGS = 10, 11, 35, 40, 41
MEMORY_FRACTION = 38
PROGRAM_ALLOC, PROGRAM_FREE, PROGRAM_FAILED, PROGRAM_END = 44, 45, 46, 47
CHECKPOINT_BEGIN, CHECKPOINT_END = 57, 58
FROM_ALLOCATOR = 1
MASK = 2**64 - 1
UNKNOWN = MASK


def varint(value):
    value &= MASK
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def zigzag(value):
    value &= MASK
    signed = value - 2**64 if value >> 63 else value
    return (signed << 1 ^ signed >> 63) & MASK


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(len(value)) + value


def compressed(data):
    """One zstd frame, made by the library that the analyzer also uses."""
    data = bytes(data)
    library = ctypes.CDLL("libzstd.so.1")
    for function in (library.ZSTD_compress, library.ZSTD_compressBound):
        function.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    frame = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(frame, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 19)
    return frame.raw[:size]


class Event:
    def __init__(
        self,
        kind,
        address=0,
        size=0,
        extra=0,
        stream=0,
        flags=0,
        device=0,
        pool=0,
        native=0,
        python=0,
        thread=1,
        sequence=None,
        time_ns=None,
        duration=0,
    ):
        self.__dict__.update(locals())

    def columns(self, before):
        return [
            self.kind,
            self.flags,
            self.sequence - before.sequence - 1,
            zigzag(self.time_ns - before.time_ns),
            zigzag(self.address - before.address),
            self.size + 1,
            zigzag(self.extra - self.size),
            self.stream + 1,
            zigzag(self.native - before.native),
            zigzag(self.python - before.python),
            zigzag(self.thread - before.thread),
            self.duration,
            (self.device + 1) & 0xFFFF,
            self.pool,
        ]

    def slot(self):
        return struct.pack(
            "<6Q5IHBB",
            self.sequence,
            self.time_ns,
            self.address & MASK,
            self.size & MASK,
            self.extra & MASK,
            self.stream & MASK,
            self.native,
            self.python,
            self.thread,
            self.duration,
            self.pool,
            self.device,
            self.kind,
            self.flags,
        )


class Trace:
    def __init__(self, pid=0, ring_path="", session=(1, 2), part=0):
        self.pid, self.ring_path, self.session, self.part = pid, ring_path, session, part
        self.body = bytearray()
        self.sequence = 0
        self.nodes = 1

    def chunk(self, kind, payload, count=1, first=0, raw=None, compression=0):
        raw = len(payload) if raw is None else raw
        header = struct.pack("<IHHIIIIQ", 0x4B435446, kind, compression, len(payload), raw, count, 0, first)
        crc = zlib.crc32(payload, zlib.crc32(header))
        self.body += header[:20] + struct.pack("<I", crc) + header[24:] + payload
        self.body += bytes(-len(self.body) % 8)
        return self

    def squeezed(self, kind, payload, count=1, first=0):
        return self.chunk(kind, compressed(payload), count, first, len(payload), 1)

    def number(self, events):
        for event in events:
            event.sequence = self.sequence + 1 if event.sequence is None else event.sequence
            event.time_ns = 1000 * event.sequence if event.time_ns is None else event.time_ns
            self.sequence = event.sequence
        return events

    def events(self, *events, squeezed=False):
        for at in range(0, len(events), 65536):
            part = self.number(events[at : at + 65536])
            before = Event(0, sequence=part[0].sequence - 1, time_ns=0, thread=0)
            columns = [bytearray() for _ in range(14)]
            for event in part:
                for column, value in zip(columns, event.columns(before)):
                    column += varint(value)
                before = event
            write = self.squeezed if squeezed else self.chunk
            write(EVENTS, b"".join(varint(len(c)) + c for c in columns), len(part), part[0].sequence)
        return self

    def facts(self, **facts):
        return self.fact_lines({key.replace("__", "."): value for key, value in facts.items()})

    def fact_lines(self, facts):
        def escaped(value):
            value = value if isinstance(value, bytes) else str(value).encode()
            return value.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")

        lines = b"".join(escaped(k) + b"\t" + escaped(v) + b"\n" for k, v in facts.items())
        return self.chunk(FACTS, lines, len(facts))

    def stack_nodes(self, nodes, first=None):
        """Pairs of parent and frame. Returns the number of the first node."""
        first = self.nodes if first is None else first
        body = b"".join(varint(first + i - parent) for i, (parent, _) in enumerate(nodes))
        body += b"".join(varint(0) for _ in nodes)
        before = 0
        for _, frame in nodes:
            body += varint(zigzag(frame - before))
            before = frame
        self.chunk(STACKS, body, len(nodes), first)
        self.nodes = first + len(nodes)
        return first

    def modules(self, *modules):
        body = b"".join(
            varint(begin) + varint(end - begin) + varint(bias) + text(path) + text(id_)
            for begin, end, bias, path, id_ in modules
        )
        return self.chunk(MODULES, body, len(modules))

    def code(self, *codes):
        body = b"".join(
            varint(number) + varint(line) + text(function) + text(file)
            for number, line, function, file in codes
        )
        return self.chunk(CODE, body, len(codes))

    def end(self, reason=1):
        return self.chunk(END, struct.pack("<QB7x", 1 << 40, reason))

    def bytes(self):
        def header(crc):
            return struct.pack(
                "<8s4I2Q2Q2I2iQ256sI172x",
                b"FTRACE\r\n",
                1,
                0x01020304,
                512,
                crc,
                *self.session,
                1_700_000_000_000_000_000,
                1,
                self.pid,
                0,
                -1,
                -1,
                0,
                str(self.ring_path).encode(),
                self.part,
            )

        return header(zlib.crc32(header(0))) + bytes(self.body)

    def ring(self, events=(), head=None, tail=0, slots=64, facts=b""):
        """A ring of this session. Its `events` follow those of the trace."""
        events = self.number(list(events))
        head = (events[-1].sequence if events else 0) if head is None else head
        slots_offset = 4096
        nodes_offset = slots_offset + 72 * slots
        code_offset = nodes_offset + 16
        facts_offset = code_offset
        header = struct.pack(
            "<8s2I2Q2I2Q2I2Q2I",
            b"FTRING\r\n",
            1,
            512,
            *self.session,
            slots,
            72,
            slots_offset,
            nodes_offset,
            1,
            0,
            code_offset,
            facts_offset,
            len(facts),
            0,
        )
        header = header.ljust(128, b"\0") + struct.pack("<Q", head)
        header = header.ljust(192, b"\0") + struct.pack("<Q", tail)
        header = header.ljust(256, b"\0") + struct.pack("<8I", 1, 1, 0, 0, 0, len(facts), 0, self.part)
        header = bytearray(header.ljust(384, b"\0"))
        header[12:16] = struct.pack("<I", 384)
        area = bytearray(72 * slots)
        for event in events:
            slot = (event.sequence - 1) % slots
            area[72 * slot : 72 * slot + 72] = event.slot()
        return bytes(header).ljust(4096, b"\0") + bytes(area) + bytes(16) + facts

    def save(self, path):
        path.write_bytes(self.bytes())
        return path
