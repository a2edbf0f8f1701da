// What the page shows, as plain data: filled by whoever has an analysis, written by page.h.
//
// Sizes are bytes, times are nanoseconds since the start of the trace, addresses are those of the
// traced process. Everything here is shown as it is: the page computes pictures, never a verdict.
#pragma once

#include "analyzer/analysis/memory_lives.h"
#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/model/held_by.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint64_t kPageUnknown = 0xffffffffffffffffu;  // a quantity that is not known

struct PageFrame {
    std::string function;
    std::string file;  // the module where the source file is not known
    std::uint32_t line = 0;
    bool python = false;
    std::string label = {};    // as the report names it
    std::string library = {};  // whose code it is; empty: the program's own
};

// A stack is a node of one call tree: the node's frame is the innermost, its parents call it.
// Node 0 is the root and stands for "no stack"; a parent always comes before its children.
struct PageStackNode {
    std::uint32_t parent = 0;
    std::uint32_t frame = 0;
    std::uint32_t telling = 0;  // the frame that the report names the stack by: so many callers up
};

struct PagePool {
    std::string name;
    std::vector<std::uint64_t> changes_ns;  // as in PoolLife
};

enum class PageMarkerKind : std::uint8_t { kOom, kRetry, kDriverBurst, kEmptyCache, kOther };

struct PageMarker {
    std::uint64_t time_ns = 0;
    PageMarkerKind kind = PageMarkerKind::kOther;
    std::string text;
};

struct PagePhase {
    std::string name;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = kNeverNs;
    std::uint8_t lane = 0;  // index into PageDevice::phase_lanes
};

// One row of "who pins the holes".
struct PageCulprit {
    std::uint32_t stack = 0;
    HeldBy held;
    std::uint64_t held_open_bytes = 0;
    std::string age;                    // "since 12 s, 40 steps"
    std::string phase = {};             // in which the oldest was born; empty = in none
    std::vector<std::uint32_t> blocks;  // indices into PageDevice::blocks
};

// Who holds the memory of a card that no hole explains.
struct PageHolder {
    std::uint32_t stack = 0;
    HeldBy held;
    std::string category;  // "activations": an estimate; empty: not known
};

// A run without an out-of-memory has one card of the last two: retries or little left, or neither.
enum class PageCardKind : std::uint8_t { kOom, kRetry, kNearMiss, kNoOom, kState };

// One size among those of a card, all on one scale.
struct PageBar {
    std::string label;  // "free, in holes"
    std::string kind;   // its colour: asked, free, device, used, reserved, ...
    std::uint64_t bytes = 0;
    std::uint64_t from_bytes = 0;  // where it begins: parts of a whole follow each other
};

// A verdict on one moment.
struct PageCard {
    PageCardKind kind = PageCardKind::kOom;
    std::uint64_t time_ns = 0;  // of the state shown: after the retry's releases
    std::string heading;        // "Fragmentation: the memory was there, but in pieces"
    std::string sentence;
    std::string who = {};     // "train.py:33 add keeps 5.9 GiB of holes open with 1.5 GiB ..."
    std::string change = {};  // what would have helped, or that nothing that was tried would
    std::string verdict;      // id of the verdict table
    std::uint64_t requested_bytes = kPageUnknown;  // a line across all bars
    std::vector<PageBar> bars = {};
    std::vector<std::string> details;
    std::vector<std::string> assumptions;
    std::uint32_t stack = 0;    // who asked
    std::string asked_by = {};  // its line; empty: nobody in particular
    std::vector<PageCulprit> culprits;
    std::vector<PageHolder> holders = {};  // most bytes first
    std::string holders_when = {};         // where it is not the card's moment
    std::string holders_more = {};         // how many lines are not among them, and their bytes
};

struct PageWhatIf {
    std::string name;       // the setting as it is typed
    std::string row_class;  // in the words of class_words()
    RunFigures run;
    bool usable = true;
    std::string note;
    bool as_run = false;     // the recorded run itself, shown first and set apart
    bool gets_past = false;  // an out-of-memory of the record does not happen
    // Reserved bytes at PageDevice::curve_times_ns, each up to the next; empty = not known.
    std::vector<std::uint64_t> reserved_curve = {};
};

// A number of the report, repeated on the page to the byte.
struct PageTotal {
    std::string label;
    std::uint64_t value = 0;
    bool bytes = true;  // false: a count
};

struct PageDevice {
    std::size_t process = 0;  // index into PageData::processes
    std::string name;
    std::uint32_t index = 0;
    bool virtual_gpu = false;
    std::uint64_t capacity_bytes = kPageUnknown;  // what the pool can have
    std::uint64_t total_bytes = kPageUnknown;     // of the card, others' share included
    std::uint64_t limit_bytes = kPageUnknown;     // that the process set itself
    std::uint64_t end_ns = 0;                     // of the trace; 0 = the last event's time
    std::vector<std::string> streams;
    BlockLives blocks;  // BlockLives::stack is an index into PageData::stacks
    std::vector<SegmentLife> segments;
    std::vector<PagePool> pools;  // the first is the default one; empty: there is no other
    OthersLife others;
    std::vector<PageMarker> markers;
    std::vector<PagePhase> phases;         // ascending start
    std::vector<std::string> phase_lanes;  // "steps", "NVTX", ...
    std::uint64_t phases_left_out = 0;
    std::vector<std::uint64_t> curve_times_ns;  // ascending
    std::vector<PageCard> cards;                // ascending time
    std::vector<PageWhatIf> whatif;
    std::vector<PageTotal> totals;
};

// A traced process. Each has a clock of its own, which begins with its trace.
struct PageProcess {
    std::string title;               // "train.py"
    std::string process;             // "pid 4711, rank 0"
    std::string command;             // the command line; shown as text
    std::vector<std::string> notes;  // damage, loss, assumptions: printed on the page
};

inline constexpr std::size_t kPageNoDevice = static_cast<std::size_t>(-1);

// One device of one process of a job, as a line: whether all of it is in the file or not.
struct PageRank {
    int rank = -1;          // -1 = none
    std::uint32_t pid = 0;  // 0 = not known
    int gpu = -1;           // -1 = the process used none
    std::uint64_t capacity_bytes = kPageUnknown;
    RunFigures run;
    std::uint64_t first_oom_ns = kNeverNs;  // on the process's own clock
    // From the start of the job's first process; kPageUnknown where a trace does not tell.
    std::uint64_t start_after_ns = kPageUnknown;
    std::string ended;
    std::string program;
    std::string file;
    std::string command;                 // makes a page of this process alone
    std::size_t device = kPageNoDevice;  // index of the device in the file; none: only this line
};

struct PageUnreadable {
    std::string file;
    std::string reason;
};

// A word that qualifies figures, and what it means.
struct PageWord {
    std::string word;
    std::string meaning;
};

struct PageData {
    std::string title;  // of the document: that of its only process, or of the job
    std::vector<PageProcess> processes;
    // The job's processes by rank, where the page is of a job; empty for one process alone.
    std::vector<PageRank> ranks;
    std::vector<PageUnreadable> unreadable;
    std::vector<PageWord> class_words;  // exact, at least, ...
    std::vector<PageFrame> frames;      // of all processes
    std::vector<PageStackNode> stacks;
    std::vector<PageDevice> devices;  // the page opens with the first
    // Of more blocks than this per device the shortest-lived stay out of the file; the page says
    // so.
    std::size_t block_budget = 12'000'000;
};

}  // namespace fragtrace::analyzer
