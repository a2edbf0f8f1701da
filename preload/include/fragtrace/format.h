// The trace format, version 1: what the recorder (preload/) writes and the analyzer reads.
//
// Both sides include this header and codec.h and nothing else of each other. The grammar, the
// meaning of every field and the table of versions are in docs/trace-format.md. All integers are
// little-endian. Nothing here allocates, throws or needs more than libc: it is compiled into a
// library that is loaded into other people's programs.
#pragma once

#include <fragtrace/event_kinds.h>

#include <stdint.h>

namespace fragtrace {

// Changes when an old reader would misread a new trace; additions that old readers can skip
// (chunk types, fact keys, event kinds) do not change it.
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr char kTraceMagic[8] = {'F', 'T', 'R', 'A', 'C', 'E', '\r', '\n'};
inline constexpr char kRingMagic[8] = {'F', 'T', 'R', 'I', 'N', 'G', '\r', '\n'};
inline constexpr uint32_t kByteOrderMark = 0x01020304;
inline constexpr uint32_t kChunkMagic = 0x4b435446;  // "FTCK"
inline constexpr uint32_t kUnknown32 = 0xffffffffu;
inline constexpr uint64_t kUnknown64 = ~uint64_t{0};

// ---- events ------------------------------------------------------------------------------------
// The kinds of events are rows of event_kinds.def.

// Who marked a range.
enum class RangeKind : uint8_t {
    kApi = 0,   // fragtrace/mark.h, the Python module
    kNvtx = 1,  // an NVTX range or mark
    kCell = 2,  // a notebook's cell
};

// A value means what it says for the kinds that it names: kinds share values.
enum EventFlag : uint8_t {
    kFlagFromAllocator = 1,  // device layer: the caller is the framework's caching allocator
    kFlagPending = 2,        // kBlockFree: waits for the kPendingEvent records that follow
    kFlagInCapture = 2,      // kBlockAlloc, kBlockOutOfMemory, kEmptyCache: the allocator took the
                             // call for a part of a stream capture: it polled no event and
                             // released no cache
    kFlagPastPool = 2,       // kDeviceAlloc, kAllocRefused: a request to the framework's allocator,
                             // which passed it to the driver because its caching was off
    kFlagUnsettled = 2,      // kMemoryInfo: another thread was in a call that may change memory
    kFlagByPool = 4,         // kMemoryInfo: sampled by the recorder, not asked for by the program
    kFlagOfGraph = 4,        // kBlockAlloc: its stream was being captured: a graph uses the block
    kFlagRejected = 4,       // kBlockOutOfMemory: by a rule of the allocator's own, before it asked
                             // the driver or released any cache
};

// In EventRecord::extra of kPendingEvent and kEventComplete, with a number that the recorder
// counts: there is no event yet, the pool puts it off until no graph is captured.
inline constexpr uint64_t kDeferredEvent = uint64_t{1} << 63;
inline constexpr uint64_t kStreamUnknown = kUnknown64;
inline constexpr uint16_t kDeviceUnknown = 0xffff;

// One event, as it lies in the ring. `sequence` orders the events of one process across threads;
// it starts at 1, and is stored last (release): a slot whose sequence is not the expected one
// holds an event that was never finished.
struct EventRecord {
    uint64_t sequence;
    uint64_t time_ns;       // monotonic, since TraceHeader::start_monotonic_ns
    uint64_t address;       // or handle
    uint64_t size;          // bytes
    uint64_t extra;         // see event_kinds.def
    uint64_t stream;        // raw handle; kStreamUnknown; 0 is the legacy default stream
    uint32_t native_stack;  // node of the stack tree, 0 = none
    uint32_t python_stack;  // node of the stack tree, 0 = none
    uint32_t thread;        // kernel thread id
    uint32_t duration_ns;   // time spent in the real call, saturating; 0 = not measured
    uint32_t pool;    // number of the pool that it belongs to, fact "pool.N"; 0 = the default one
    uint16_t device;  // ordinal in the process, kDeviceUnknown
    EventKind kind;
    uint8_t flags;
};

static_assert(sizeof(EventRecord) == 72);

// ---- stacks ------------------------------------------------------------------------------------

// Stacks are leaves of one prefix tree; node 0 is the root and stands for "no stack". A node's
// parent is its caller (the outer frame), always with a smaller number.
struct StackNode {
    uint32_t parent;
    uint32_t line;   // Python: line number, 0 = unknown; native: 0
    uint64_t frame;  // native: return address; Python: kPythonFrame, kPythonEntry where it
                     // applies, code id << 32, lasti
};

static_assert(sizeof(StackNode) == 16);

inline constexpr uint64_t kPythonFrame = uint64_t{1} << 63;
// The frame was entered from C: the call of the interpreter's evaluator that runs it runs the
// frames inside of it as well, up to the next one with this bit. Set by recorders that know; a
// whole stack without it says nothing.
inline constexpr uint64_t kPythonEntry = uint64_t{1} << 62;
inline constexpr uint32_t kMaxCodeId = (1u << 30) - 1;

constexpr bool is_python_frame(uint64_t frame) {
    return (frame & kPythonFrame) != 0;
}

constexpr bool is_python_entry(uint64_t frame) {
    return is_python_frame(frame) && (frame & kPythonEntry) != 0;
}

constexpr uint32_t python_code_id(uint64_t frame) {
    return static_cast<uint32_t>((frame >> 32) & kMaxCodeId);
}

// ---- the file ----------------------------------------------------------------------------------

// First bytes of a trace file. What is known only later (settings, versions, devices) are facts.
struct TraceHeader {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;    // kByteOrderMark
    uint32_t header_bytes;  // sizeof(TraceHeader); chunks begin here
    uint32_t crc;           // crc32 of this struct with crc = 0
    uint64_t session[2];    // random; the ring of this trace carries the same
    uint64_t start_unix_ns;
    uint64_t start_monotonic_ns;  // CLOCK_MONOTONIC
    uint32_t pid;
    uint32_t parent_pid;
    int32_t rank;  // RANK or SLURM_PROCID, -1 = none
    int32_t local_rank;
    uint64_t process_start_ticks;  // field 22 of /proc/PID/stat: tells a reused pid
    char ring_path[256];           // absolute, NUL-terminated; empty = no ring
    uint32_t part;  // of a recording in parts, from 1; 0 = one file, or a copy of some parts
    char reserved[172];
};

static_assert(sizeof(TraceHeader) == 512);

enum class ChunkType : uint16_t {
    kEvents = 1,   // columns, codec.h
    kStacks = 2,   // StackNode columns; first = number of the first node
    kCode = 3,     // Python code objects
    kModules = 4,  // mapped native modules; a later one covers an earlier one
    kFacts = 5,    // "key\tvalue\n" lines, UTF-8, backslash escapes \\ \t \n; later ones win
    kEnd = 6,      // how the process ended; events may still follow
    kIndex = 7,    // offsets of all chunks, followed by a FileTrailer
};

enum class Compression : uint16_t { kNone = 0, kZstd = 1 };

// Precedes every payload; chunks start at multiples of 8 (payloads are padded with zeros).
struct ChunkHeader {
    uint32_t magic;  // kChunkMagic
    ChunkType type;
    Compression compression;
    uint32_t stored_bytes;  // payload in the file, without padding
    uint32_t raw_bytes;     // payload once decompressed
    uint32_t count;         // records in it
    uint32_t crc;           // crc32 of this header with crc = 0, then of the stored payload
    uint64_t first;         // kEvents: first sequence number; kStacks: first node; else 0
};

static_assert(sizeof(ChunkHeader) == 32);

// Limits that a reader may rely on (and must check: a trace is untrusted).
inline constexpr uint32_t kMaxChunkRawBytes = 64u << 20;
inline constexpr uint32_t kMaxChunkEvents = 65536;

enum class EndReason : uint8_t {
    kNormal = 1,     // exit(), return from main
    kQuickExit = 2,  // _exit, _Exit, quick_exit: no destructors ran
    kContinued = 3   // the process went on: another part follows, or this is a copy
};

// Payload of kEnd.
struct EndRecord {
    uint64_t time_ns;
    EndReason reason;
    uint8_t reserved[7];
};

static_assert(sizeof(EndRecord) == 16);

// One entry of a kIndex payload.
struct IndexEntry {
    uint64_t offset;   // of the ChunkHeader in the file
    uint64_t first;    // as in the ChunkHeader
    uint64_t time_ns;  // of the first event, 0 for other chunks
    uint32_t count;
    ChunkType type;
    uint16_t reserved;
};

static_assert(sizeof(IndexEntry) == 32);

// Last bytes of a file that was closed in order.
struct FileTrailer {
    uint64_t index_offset;  // of the kIndex chunk
    char magic[8];          // kTraceMagic
};

static_assert(sizeof(FileTrailer) == 16);

// ---- the ring ----------------------------------------------------------------------------------

// A second file, mapped shared, that survives the process: event slots and everything that is
// needed to read them (stack nodes, Python code records). Removed at a normal end; the analyzer
// absorbs what the trace file lacks from it. Fields named "written" say how much of an area is
// already in the trace file. Counters are updated with atomic operations by the recorder.
struct RingHeader {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;  // sizeof(RingHeader)
    uint64_t session[2];    // as in TraceHeader
    uint32_t slot_count;    // a power of two
    uint32_t slot_bytes;    // sizeof(EventRecord)
    uint64_t slots_offset;  // areas, from the start of the file
    uint64_t nodes_offset;
    uint32_t node_capacity;
    uint32_t code_capacity_bytes;
    uint64_t code_offset;   // records as in a kCode payload, one after the other
    uint64_t facts_offset;  // fact lines as in a kFacts payload; 0 = none
    uint32_t facts_capacity_bytes;
    uint32_t reserved0;
    alignas(64) uint64_t head;        // sequence number of the newest claimed slot (0 = none yet);
                                      // event with sequence s lies in slot (s - 1) % slot_count
    alignas(64) uint64_t tail;        // newest sequence number that is in the trace file
    alignas(64) uint32_t node_count;  // nodes in use, the root included
    uint32_t nodes_written;
    uint32_t code_bytes;  // bytes of the code area in use
    uint32_t code_bytes_written;
    uint32_t code_count;
    uint32_t facts_bytes;  // bytes of the facts area in use: whole lines
    uint32_t facts_bytes_written;
    uint32_t part;  // TraceHeader::part of the trace file that this ring continues
    // Losses; also written as facts "lost.*".
    alignas(64) uint64_t lost_ring_full;
    uint64_t lost_reentrant;       // refused: the recorder was interrupted by a signal handler
    uint64_t stacks_without_room;  // events whose stack found the tree full
    uint64_t native_unwind_failures;
    uint64_t python_walk_failures;
    uint64_t trace_write_errors;  // chunks that could not be written (disk full, size limit)
};

static_assert(sizeof(RingHeader) % 64 == 0);

}  // namespace fragtrace
