"""Reads a trace and its ring, written only from docs/trace-format.md and no other part of the project.

It is a witness: the recorder and the analyzer share a header, and would share its mistakes.
"""

import ctypes
import ctypes.util
import pathlib
import struct
import zlib

COLUMNS = (
    "kind",
    "flags",
    "sequence",
    "time_ns",
    "address",
    "size",
    "extra",
    "stream",
    "native_stack",
    "python_stack",
    "thread",
    "duration_ns",
    "device",
    "pool",
)
# The bits of each field, in the order of a ring's slot.
WIDTHS = dict.fromkeys(("sequence", "time_ns", "address", "size", "extra", "stream"), 64)
WIDTHS.update(dict.fromkeys(("native_stack", "python_stack", "thread", "duration_ns", "pool"), 32))
WIDTHS.update(device=16, kind=8, flags=8)
SLOT = struct.Struct("<6Q5IH2B")
PLAIN = {"kind", "flags", "duration_ns", "pool"}
UNKNOWN_IS_0 = {"size", "stream", "device"}


class Damaged(Exception):
    """The bytes do not match the format."""


def zstd_decompress(data, size):
    library = ctypes.CDLL(ctypes.util.find_library("zstd"))
    library.ZSTD_decompress.restype = ctypes.c_size_t
    into = ctypes.create_string_buffer(size)
    got = library.ZSTD_decompress(into, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if got != size:
        raise Damaged(f"a frame of {got} bytes, not {size}")
    return into.raw


class Bytes:
    """A payload, read from its beginning to its end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def signed(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def text(self):
        return self.raw(self.varint()).decode(errors="replace")

    def raw(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def left(self):
        return len(self.data) - self.at


class Trace:
    def __init__(self, path):
        self.events, self.facts, self.codes, self.modules = [], {}, {}, []
        self.nodes = [(0, 0, 0)]  # parent, line, frame
        self.end = None  # time and reason
        data = pathlib.Path(path).read_bytes()
        self.read_header(data)
        at = self.header_bytes
        while at + 32 <= len(data) and data[at : at + 4] == b"FTCK":
            at = self.read_chunk(data, at)
        self.has_trailer = data[-8:] == b"FTRACE\r\n" and at + 16 == len(data)

    def read_header(self, data):
        if data[:8] != b"FTRACE\r\n":
            raise Damaged("no trace")
        self.version, order, self.header_bytes, crc = struct.unpack_from("<4I", data, 8)
        if order != 0x01020304 or self.version != 1:
            raise Damaged(f"version {self.version}, byte order {order:#x}")
        if zlib.crc32(data[:20] + bytes(4) + data[24:512]) != crc:
            raise Damaged("the header's checksum")
        self.session = data[24:40]
        self.start_unix_ns, _ = struct.unpack_from("<2Q", data, 40)
        self.pid, self.parent_pid, self.rank, self.local_rank = struct.unpack_from("<2I2i", data, 56)
        (self.start_ticks,) = struct.unpack_from("<Q", data, 72)
        self.ring_path = data[80:336].split(b"\0")[0].decode()
        (self.part,) = struct.unpack_from("<I", data, 336)

    def read_chunk(self, data, at):
        kind, compression, stored, raw, count, crc, first = struct.unpack_from("<2H4IQ", data, at + 4)
        payload = data[at + 32 : at + 32 + stored]
        header = data[at : at + 20] + bytes(4) + data[at + 24 : at + 32]
        if zlib.crc32(payload, zlib.crc32(header)) != crc:
            raise Damaged(f"the checksum of the chunk at {at}")
        if compression == 1:
            payload = zstd_decompress(payload, raw)
        read = {
            1: self.read_events,
            2: self.read_nodes,
            3: self.read_code,
            4: self.read_modules,
            5: self.read_facts,
            6: self.read_end,
        }.get(kind)
        if read is not None:  # the index is optional, and unknown types are skipped
            read(payload, count, first)
        return at + 32 + (stored + 7) // 8 * 8

    def read_events(self, payload, count, first):
        columns, whole = {}, Bytes(payload)
        for name in COLUMNS:
            column = Bytes(whole.raw(whole.varint()) if whole.left() else bytes(count))
            columns[name] = [column.varint() for _ in range(count)]
        before = dict.fromkeys(COLUMNS, 0) | {"sequence": first - 1}
        for number in range(count):
            event = {}
            for name in COLUMNS:
                value, mask = columns[name][number], (1 << WIDTHS[name]) - 1
                if name == "sequence":
                    value += before["sequence"] + 1
                elif name in UNKNOWN_IS_0:
                    value -= 1
                elif name not in PLAIN:
                    value = (value >> 1) ^ -(value & 1)
                    value += event["size"] if name == "extra" else before[name]
                event[name] = value & mask
            self.events.append(event)
            before = event

    def read_nodes(self, payload, count, first):
        if first != len(self.nodes):
            raise Damaged(f"nodes from {first}, not from {len(self.nodes)}")
        all_of, frame = Bytes(payload), 0
        parents = [first + i - all_of.varint() for i in range(count)]
        lines = [all_of.varint() for _ in range(count)]
        for parent, line in zip(parents, lines):
            frame = (frame + all_of.signed()) % 2**64
            self.nodes.append((parent, line, frame))

    def read_code(self, payload, count, _first):
        records = Bytes(payload)
        for _ in range(count):
            number, line = records.varint(), records.varint()
            self.codes[number] = (records.text(), records.text(), line)  # function, file

    def read_modules(self, payload, count, _first):
        records = Bytes(payload)
        self.modules = []
        for _ in range(count):
            begin, length, bias = records.varint(), records.varint(), records.varint()
            self.modules.append((begin, length, bias, records.text(), records.raw(records.varint())))

    def read_facts(self, payload, _count, _first):
        for line in payload.decode(errors="replace").splitlines():
            key, _, value = line.partition("\t")
            for escape, byte in (("\\t", "\t"), ("\\n", "\n"), ("\\\\", "\\")):
                value = value.replace(escape, byte)
            self.facts[key] = value

    def read_end(self, payload, _count, _first):
        self.end = struct.unpack_from("<QB", payload)

    def add_ring(self, path):
        """Adds the events that the ring of a killed process has and the file lacks."""
        data = pathlib.Path(path).read_bytes()
        if data[:8] != b"FTRING\r\n" or data[16:32] != self.session:
            raise Damaged("no ring of this trace")
        slot_count, slot_bytes, slots, nodes = struct.unpack_from("<2I2Q", data, 32)
        code, facts = struct.unpack_from("<2Q", data, 64)
        (head,) = struct.unpack_from("<Q", data, 128)
        (tail,) = struct.unpack_from("<Q", data, 192)
        (node_count, nodes_written, code_bytes, code_written, _, facts_bytes, facts_written, part) = (
            struct.unpack_from("<8I", data, 256)
        )
        self.alive_ns, self.next_program_ns, start_ticks = struct.unpack_from("<3Q", data, 288)
        if start_ticks not in (0, self.start_ticks):
            raise Damaged("the ring of another process")
        if part != self.part:
            raise Damaged(f"the ring continues part {part}")
        for number in range(nodes_written, node_count):
            self.nodes.append(struct.unpack_from("<2IQ", data, nodes + 16 * number))
        self.read_facts(data[facts + facts_written : facts + facts_bytes], 0, 0)
        records = Bytes(data[code + code_written : code + code_bytes])
        while records.left():
            number, line = records.varint(), records.varint()
            self.codes[number] = (records.text(), records.text(), line)
        for sequence in range(tail + 1, head + 1):
            at = slots + slot_bytes * ((sequence - 1) % slot_count)
            event = dict(zip(WIDTHS, SLOT.unpack_from(data, at)))
            if event["sequence"] == sequence:
                self.events.append(event)
