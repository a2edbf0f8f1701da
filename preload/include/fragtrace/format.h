// The trace format, version 1: the recorder (preload/) writes it and the analyzer reads it.
//
// This header, codec.h and the headers that they include are all that both sides share.
// docs/trace-format.md describes the grammar, the meaning of every field and the versions. All
// integers are little-endian. Nothing here allocates, throws or needs more than libc, because the
// recorder is a library inside other people's programs.
#pragma once

#include <fragtrace/event_kinds.h>

#include <stdint.h>

namespace fragtrace {

// The version increases when an old reader would misread a new trace. Additions that an old reader
// can skip (chunk types, fact keys, event kinds) do not increase it.
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr char kTraceMagic[8] = {'F', 'T', 'R', 'A', 'C', 'E', '\r', '\n'};
inline constexpr char kRingMagic[8] = {'F', 'T', 'R', 'I', 'N', 'G', '\r', '\n'};
inline constexpr uint32_t kByteOrderMark = 0x01020304;
inline constexpr uint32_t kChunkMagic = 0x4b435446;  // "FTCK"
inline constexpr uint32_t kUnknown32 = 0xffffffffu;
inline constexpr uint64_t kUnknown64 = ~uint64_t{0};

// ---- events ------------------------------------------------------------------------------------
// event_kinds.def lists the kinds of events.

// Origin of a range.
enum class RangeKind : uint8_t {
    kApi = 0,   // fragtrace/mark.h or the Python module
    kNvtx = 1,  // an NVTX range or mark
    kCell = 2,  // a cell of a notebook
};

// Kinds share values: a flag has its meaning only for the kinds named beside it.
enum EventFlag : uint8_t {
    kFlagFromAllocator = 1,  // device layer: the caller is the framework's caching allocator
    kFlagPending = 2,        // kBlockFree: the free waits for the kPendingEvent events that follow
    kFlagInCapture = 2,      // kBlockAlloc, kBlockOutOfMemory, kEmptyCache: the allocator treated
                             // the call as part of a stream capture. It did not poll CUDA events
                             // and did not release cached segments.
    kFlagPastPool = 2,       // kDeviceAlloc, kAllocRefused: a request to the framework's allocator,
                             // which passed it to the driver because its caching was disabled
    kFlagUnsettled = 2,      // kMemoryInfo: another thread was in a call that may change memory
    kFlagUpperEnd = 2,       // kProgramBlockAlloc, kProgramRequestFailed: the pool serves requests
                             // from both ends of its memory, this one from the upper end
    kFlagByPool = 4,         // kMemoryInfo: sampled by the recorder, not requested by the program
    kFlagOfGraph = 4,        // kBlockAlloc: its stream was being captured, so a graph uses the
                             // block
    kFlagRejected = 4,       // kBlockOutOfMemory: a rule of the allocator rejected the request. The
                             // allocator did not call the driver and did not release cached
                             // segments.
};

// Set in EventRecord::extra of kPendingEvent and kEventComplete, together with a number that the
// recorder counts. It means that no CUDA event exists yet: PyTorch's allocator records it later,
// when no graph is being captured.
inline constexpr uint64_t kDeferredEvent = uint64_t{1} << 63;
inline constexpr uint64_t kStreamUnknown = kUnknown64;
inline constexpr uint16_t kDeviceUnknown = 0xffff;

// One event, in the layout that the ring uses. `sequence` orders the events of one process across
// threads and starts at 1. It is stored last, with release order: a slot with an unexpected
// sequence contains an unfinished event.
struct EventRecord {
    uint64_t sequence;
    uint64_t time_ns;       // monotonic, since TraceHeader::start_monotonic_ns
    uint64_t address;       // address or handle
    uint64_t size;          // bytes
    uint64_t extra;         // see event_kinds.def
    uint64_t stream;        // raw handle; kStreamUnknown if unknown; 0 = the legacy default stream
    uint32_t native_stack;  // node of the stack tree, 0 = none
    uint32_t python_stack;  // node of the stack tree, 0 = none
    uint32_t thread;        // kernel thread id
    uint32_t duration_ns;   // time in the real call, saturating; 0 = not measured
    uint32_t pool;          // pool of the memory: N of the fact "pool.N"; 0 = the default pool
    uint16_t device;        // device ordinal in this process; kDeviceUnknown if unknown
    EventKind kind;
    uint8_t flags;
};

static_assert(sizeof(EventRecord) == 72);

// ---- stacks ------------------------------------------------------------------------------------

// All stacks form one prefix tree. A stack is identified by the node of its innermost frame. Node 0
// is the root and means "no stack". A node's parent is its caller (the outer frame) and always has
// a smaller number.
struct StackNode {
    uint32_t parent;
    uint32_t line;   // Python: line number, 0 = unknown; native: 0
    uint64_t frame;  // native: return address. Python: kPythonFrame, kPythonEntry if it applies,
                     // code id << 32, lasti (offset of the instruction)
};

static_assert(sizeof(StackNode) == 16);

inline constexpr uint64_t kPythonFrame = uint64_t{1} << 63;
// Set if C code called the interpreter to run this frame. That call also runs the Python frames
// inside this one, up to the next frame with this bit. Older recorders do not set the bit, so a
// stack without any such bit says nothing about it.
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

// The first bytes of a trace file. Values that are known only later (settings, versions, devices)
// are facts.
struct TraceHeader {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;    // kByteOrderMark
    uint32_t header_bytes;  // sizeof(TraceHeader), which is also the offset of the first chunk
    uint32_t crc;           // crc32 of this struct with crc = 0
    uint64_t session[2];    // random; the ring of this trace has the same value
    uint64_t start_unix_ns;
    uint64_t start_monotonic_ns;  // CLOCK_MONOTONIC
    uint32_t pid;
    uint32_t parent_pid;
    int32_t rank;  // from the environment; -1 = none, or a helper process that inherited it
    int32_t local_rank;
    uint64_t process_start_ticks;  // field 22 of /proc/PID/stat: distinguishes processes with the
                                   // same pid
    char ring_path[256];           // absolute, NUL-terminated; empty = no ring
    uint32_t part;  // number in a recording in parts, from 1; 0 = not in parts, or a copy of parts
    char host[68];  // the host's name, NUL-terminated; empty = unknown
    char reserved[104];
};

static_assert(sizeof(TraceHeader) == 512);

enum class ChunkType : uint16_t {
    kEvents = 1,   // columns, see codec.h
    kStacks = 2,   // columns of StackNodes; first = number of the first node
    kCode = 3,     // Python code objects
    kModules = 4,  // mapped native modules; a later chunk replaces overlapping mappings
    kFacts = 5,    // "key\tvalue\n" lines, UTF-8, backslash escapes \\ \t \n; the last value of a
                   // key counts
    kEnd = 6,      // how the process ended; more events may follow
    kIndex = 7,    // offsets of all chunks, followed by a FileTrailer
};

enum class Compression : uint16_t { kNone = 0, kZstd = 1 };

// Header of every chunk, directly before its payload. Chunks start at multiples of 8 bytes;
// payloads are padded with zeros.
struct ChunkHeader {
    uint32_t magic;  // kChunkMagic
    ChunkType type;
    Compression compression;
    uint32_t stored_bytes;  // size of the payload in the file, without padding
    uint32_t raw_bytes;     // size of the payload after decompression
    uint32_t count;         // number of records
    uint32_t crc;           // crc32 of this header with crc = 0, then of the stored payload
    uint64_t first;         // kEvents: first sequence number; kStacks: first node; else 0
};

static_assert(sizeof(ChunkHeader) == 32);

// Limits that every writer respects. A reader must check them, because a trace is untrusted input.
inline constexpr uint32_t kMaxChunkRawBytes = 64u << 20;
inline constexpr uint32_t kMaxChunkEvents = 65536;

enum class EndReason : uint8_t {
    kNormal = 1,     // exit(), return from main
    kQuickExit = 2,  // _exit, _Exit, quick_exit: no destructors ran
    kContinued = 3   // the process continued: another part follows, or this file is a copy
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

// The last bytes of a file that was closed normally.
struct FileTrailer {
    uint64_t index_offset;  // of the kIndex chunk
    char magic[8];          // kTraceMagic
};

static_assert(sizeof(FileTrailer) == 16);

// ---- the ring ----------------------------------------------------------------------------------

// The facts whose values RingHeader::losses has. New ones are appended.
inline constexpr const char* kRingLosses[] = {"lost.unfinished",
                                              "lost.write_failed",
                                              "lost.removed",
                                              "lost.before_start",
                                              "lost.facts",
                                              "lost.completions",
                                              "held.without_room",
                                              "ranges.without_room",
                                              "tables.without_room",
                                              "stacks.python_none"};
inline constexpr unsigned kRingLossCount = sizeof kRingLosses / sizeof kRingLosses[0];

// The ring is a second file, mapped shared, that survives the process. It contains event slots and
// all that is needed to read them: stack nodes, Python code records, facts. A normal exit removes
// the file. Otherwise the analyzer adds to the trace what only the ring has. Fields named "written"
// say how much of an area is already in the trace file. The recorder updates counters with atomic
// operations.
struct RingHeader {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;  // sizeof(RingHeader)
    uint64_t session[2];    // as in TraceHeader
    uint32_t slot_count;    // a power of two
    uint32_t slot_bytes;    // sizeof(EventRecord)
    uint64_t slots_offset;  // areas: offsets from the start of the file
    uint64_t nodes_offset;
    uint32_t node_capacity;
    uint32_t code_capacity_bytes;
    uint64_t code_offset;   // records as in a kCode payload, without gaps
    uint64_t facts_offset;  // fact lines as in a kFacts payload; 0 = none
    uint32_t facts_capacity_bytes;
    uint32_t reserved0;
    alignas(64) uint64_t head;        // sequence number of the newest claimed slot, 0 = none yet.
                                      // The event with sequence s is in slot (s - 1) % slot_count.
    alignas(64) uint64_t tail;        // newest sequence number that is in the trace file
    alignas(64) uint32_t node_count;  // nodes in use, the root included
    uint32_t nodes_written;
    uint32_t code_bytes;  // bytes of the code area in use
    uint32_t code_bytes_written;
    uint32_t code_count;
    uint32_t facts_bytes;  // bytes of the facts area in use; always whole lines
    uint32_t facts_bytes_written;
    uint32_t part;  // TraceHeader::part of the trace file that this ring continues
    // CLOCK_MONOTONIC in nanoseconds when the drain last ran; 0 = unknown. A killed process ended
    // later. Rings of version 0.1.0 have 0 here and in the next two fields.
    uint64_t alive_ns;
    // CLOCK_MONOTONIC in nanoseconds when the next program of the process began, after an exec.
    // That program writes it, if it has the recorder and needed more than 2 ms of processor time
    // before or during its start. 0 = there was none, as far as is known.
    uint64_t next_program_ns;
    uint64_t process_start_ticks;  // as in TraceHeader
    // Counters of losses. The trace has them as facts "lost.*", too.
    alignas(64) uint64_t lost_ring_full;
    uint64_t lost_reentrant;       // events lost because a signal handler had interrupted the
                                   // recorder
    uint64_t stacks_without_room;  // events whose stack did not fit into the full tree
    uint64_t native_unwind_failures;
    uint64_t python_walk_failures;
    uint64_t trace_write_errors;  // chunks that could not be written (full disk, size limit)
    // More counters, in the order of kRingLosses, as of the drain's last run. Rings of version
    // 0.1.0 lack them: header_bytes ends before.
    alignas(64) uint64_t losses[16];
};

static_assert(sizeof(RingHeader) % 64 == 0);
static_assert(kRingLossCount <= sizeof RingHeader::losses / sizeof RingHeader::losses[0]);

}  // namespace fragtrace
