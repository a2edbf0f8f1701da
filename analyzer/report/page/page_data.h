// The content of the page as plain data. page_content.h fills it and page.h writes it.
//
// Sizes are bytes, times are nanoseconds since the start of the trace, addresses are those of the
// traced process. The page shows these values unchanged: it draws, but makes no verdicts.
#pragma once

#include "analyzer/analysis/memory_lives.h"
#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/model/held_by.h"
#include "analyzer/report/text/compare_figures.h"
#include "analyzer/report/text/compare_rows.h"
#include "analyzer/report/text/report_line.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint64_t kPageUnknown = 0xffffffffffffffffu;  // unknown quantity

struct PageFrame {
    std::string function;
    std::string file;  // the module if the source file is unknown
    std::uint32_t line = 0;
    bool python = false;
    std::string label = {};    // its name in the report
    std::string library = {};  // the library it belongs to; empty: the program itself
};

// A stack is a node of one call tree. The node's frame is the innermost, and its parents are the
// callers. Node 0 is the root and means "no stack". A parent always precedes its children.
struct PageStackNode {
    std::uint32_t parent = 0;
    std::uint32_t frame = 0;
    // Number of callers from here up to the frame that names the stack in reports.
    std::uint32_t telling = 0;
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
    std::uint8_t lane = 0;    // index into PageDevice::phase_lanes
    std::uint32_t count = 1;  // more than 1: neighbours that are shown as one
};

// One row of the table "Which allocations block free memory".
struct PageCulprit {
    std::uint32_t stack = 0;
    HeldBy held;
    std::uint64_t held_open_bytes = 0;
    std::string age;                    // "oldest 12 s"; empty = unknown
    std::string phase = {};             // phase in which the oldest was allocated; empty = none
    std::vector<std::uint32_t> blocks;  // indices into PageDevice::blocks
    std::string outlived = {};          // ", still alive 3 steps later"; empty = not known to be
};

// One row of "live memory by line".
struct PageHolder {
    std::uint32_t stack = 0;
    HeldBy held;
    std::string category;  // "activations": an estimate; empty: unknown
    // Change of its bytes since PageCard::since; nullopt = unknown, or nothing to compare with.
    std::optional<std::int64_t> change = std::nullopt;
};

// A part of the memory in use, or of the memory outside the pool.
struct PagePart {
    std::string name;
    std::uint64_t bytes = 0;
    std::string note = {};  // "20 MiB older than one step"
};

// A line whose live memory grows from step to step.
struct PageGrowingLine {
    std::uint32_t stack = 0;
    HeldBy held;           // bytes: growth over the compared steps
    std::string category;  // empty: unknown
    std::uint64_t bytes_per_step = 0;
    std::uint64_t live_bytes = 0;  // at the last compared step
};

// A run without an out-of-memory has one card of the last three kinds. kNearMiss: a retry was
// needed or little memory was left. kState: a snapshot without history. Otherwise kNoOom.
enum class PageCardKind : std::uint8_t { kOom, kRetry, kNearMiss, kNoOom, kState };

// The question that the first screen answers. page_screen.h chooses it by the verdict.
enum class PageScreen : std::uint8_t {
    kBlocked,   // which allocations block free memory?
    kShortage,  // which lines hold the memory when it runs out?
    kGrowth,    // which line grows?
    kOthers,    // who else holds memory of this card?
    kRetry,     // why was a retry needed?
    kNearMiss,  // how close was it?
    kPeak,      // which lines hold the memory at the peak?
    kState,     // which lines hold the memory at this moment?
};

// One of a card's sizes, drawn as a bar. All bars of a card have the same scale.
struct PageBar {
    std::string label;  // "free, in holes"
    std::string kind;   // its colour: asked, free, device, used, reserved, ...
    std::uint64_t bytes = 0;
    std::uint64_t from_bytes = 0;  // start of the bar: parts of a whole follow each other
};

// A verdict on one moment.
struct PageCard {
    PageCardKind kind = PageCardKind::kOom;
    PageScreen screen = PageScreen::kBlocked;
    std::string question = {};  // of the screen, in words
    std::uint64_t time_ns = 0;  // of the state shown; of a retry, after its releases
    std::string heading;        // "Fragmentation: the memory was there, but in pieces"
    std::string sentence;
    // "train.py:33 add prevents 5.9 GiB of free memory from being reused ..."
    std::string who = {};
    std::string change = {};      // what would have helped, or that nothing that was tested would
    std::string change_row = {};  // PageWhatIf::name of this change; empty: it has no row
    std::vector<ReportLine> tried = {};  // outcomes of `fragtrace try`
    std::string forecast_error = {};     // if the remedy has a forecast
    bool reported = false;  // the report is about this failure, so the page opens with it
    std::string verdict;    // id in the table of verdicts
    std::uint64_t requested_bytes = kPageUnknown;  // drawn as a line across all bars
    std::vector<PageBar> bars = {};
    std::vector<std::string> details;
    std::vector<std::string> assumptions;
    std::uint32_t stack = 0;    // stack of the request
    std::string asked_by = {};  // code line of the request; empty: unknown
    std::vector<PageCulprit> culprits;
    std::vector<PageHolder> holders = {};  // most bytes first
    std::string holders_when = {};         // the time of `holders` if it is not the card's time
    std::string holders_more = {};         // number of lines not listed, and their bytes
    std::string since = {};                // "step 4", with which `holders` are compared
    std::uint64_t in_use_bytes = kPageUnknown;  // sum of all lines, the ones not listed included
    // The memory of `holders` by category, and how sure the categories are. Empty: unknown.
    std::vector<PagePart> categories = {};
    std::string categories_basis = {};
    std::vector<PagePart> outside = {};  // memory of the card outside the pool at the same moment
    std::vector<ReportLine> lines = {};  // what else the report says about this moment
};

// What a reader can copy to use a change.
struct PageCommands {
    std::string set = {};  // the setting as an assignment for a shell; empty: no setting
    std::string run = {};  // runs the program again with the change; empty: it cannot
};

struct PageWhatIf {
    std::string name;       // the setting as the user would type it
    std::string row_class;  // in the words of class_words
    RunFigures run;
    bool usable = true;
    std::string note;
    bool as_run = false;      // the recorded run itself, shown first and separately
    bool gets_past = false;   // avoids an out-of-memory of the recorded run
    bool rest_fails = false;  // gets_past, but the rest of the step is forecast to fail
    std::string cost = {};    // as the report says it; empty = unknown
    PageCommands commands = {};
    // Reserved bytes at PageDevice::curve_times_ns. Each value is valid until the next. Empty =
    // unknown.
    std::vector<std::uint64_t> reserved_curve = {};
    std::string difference = {};  // of reserved memory: "same", "-60 MiB"
    std::string differs = {};     // from which event on its requests are others; empty: none are
    bool bound = false;           // a limit of reserved memory for any allocator
};

// A number of the report. The page shows exactly the same value.
struct PageTotal {
    std::string label;
    std::uint64_t value = 0;
    bool bytes = true;  // false: a count
};

// Popular advice, and what it would have done.
struct PageAdvice {
    std::string name;
    std::string effect;
    bool settings = true;  // false: it reduces the program's own memory, so no replay shows it
};

// Free blocks of a snapshot that serve the same requests.
struct PageHoles {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::string serves;
};

// The phases of one name, summed up.
struct PagePhaseTotals {
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_reserved = kPageUnknown;
    std::int64_t change_bytes = 0;
    std::uint64_t driver_allocs = kPageUnknown;
    std::uint64_t retries = kPageUnknown;
};

// The category of the blocks of a stack.
struct PageStackCategory {
    std::uint32_t stack = 0;     // index into PageData::stacks
    std::uint32_t category = 0;  // index into PageDevice::categories
};

struct PageDevice {
    std::size_t process = 0;  // index into PageData::processes
    std::string name;
    std::uint32_t index = 0;
    bool virtual_gpu = false;
    std::uint64_t capacity_bytes = kPageUnknown;  // memory that the pool can use
    std::uint64_t total_bytes = kPageUnknown;     // size of the card, including the share of others
    std::uint64_t limit_bytes = kPageUnknown;     // limit that the process itself set
    std::uint64_t end_ns = 0;                     // end of the trace; 0 = time of the last event
    std::vector<std::string> streams;
    std::vector<std::string> categories;  // kinds of memory, and the user's categories
    std::vector<PageStackCategory> stack_categories;
    BlockLives blocks;  // BlockLives::stack is an index into PageData::stacks
    std::vector<SegmentLife> segments;
    std::vector<PagePool> pools;  // the first is the default pool; empty: it is the only one
    BytesOverTime others;
    // Of the process, the same for all of its devices. Empty: the trace has no such allocation.
    BytesOverTime pinned = {};
    BytesOverTime managed = {};
    std::vector<PageMarker> markers;
    std::vector<PagePhase> phases;              // ascending start
    std::vector<std::string> phase_lanes;       // "steps", "NVTX", ...
    std::vector<std::uint64_t> curve_times_ns;  // ascending
    std::vector<PageCard> cards;                // ascending time
    std::vector<PageWhatIf> whatif;
    std::string no_whatif = {};                    // why nothing was replayed
    std::vector<std::string> whatif_remarks = {};  // about all rows
    std::vector<ReportLine> whatif_classes = {};   // the meanings of the rows' classes
    std::vector<PageTotal> totals;
    std::vector<PageAdvice> advice;
    std::string advice_heading = {};
    std::vector<PageGrowingLine> growing;  // most growth first
    std::string growing_when;              // "from step 3 to step 12"
    std::vector<ReportLine> growth;        // what the report says about growth and survivors
    std::vector<ReportLine> near_miss;
    std::string holes_heading;  // of a snapshot without history; empty = no `holes`
    std::vector<PageHoles> holes;
    std::string holes_more;         // "and 3 more sizes ...": sizes without a row
    std::vector<ReportLine> lines;  // what the report says about the device and the whole run
};

// A traced process. Each has its own clock, which starts with its trace.
struct PageProcess {
    std::string title;               // "train.py"
    std::string process;             // "pid 4711, rank 0"
    std::string command;             // command line; shown as text
    std::vector<std::string> notes;  // damage, loss, assumptions: printed on the page
    std::string program_pools = {};  // the report's lines about pools of the program; empty = none
    std::vector<ReportLine> lines = {};  // what the report says about the process
    std::vector<PagePhaseTotals> phases = {};
    std::string phases_more = {};  // "and 3 more ...": phases without a row
};

inline constexpr std::size_t kPageNoDevice = static_cast<std::size_t>(-1);

// Values of a heat row: 0 = the process did not run then. Shares begin at kPageHeatZero.
inline constexpr std::uint8_t kPageHeatUnknown = 1;  // whether it still ran, or held, is not known
inline constexpr std::uint8_t kPageHeatZero = 2;
inline constexpr std::uint8_t kPageHeatMost = 255;

// One device of one process of a job, as a table row. The file may contain the device's data or
// not.
struct PageRank {
    int rank = -1;          // -1 = none
    std::uint32_t pid = 0;  // 0 = not known
    int gpu = -1;           // -1 = the process used no GPU
    std::string host;       // empty = not known
    int generation = -1;    // -1 = the job has only one
    std::string helper;     // "helper of rank 3"; empty = it is none
    bool trace = true;      // false: only a summary of the process is known
    std::uint64_t capacity_bytes = kPageUnknown;
    RunFigures run;
    std::uint64_t first_oom_ns = kNeverNs;  // on the process's own clock
    // Number of its generation's first failure, in the order of the generations; -1 = it is none.
    int first_failure = -1;
    // Time since the start of the job's first process; kPageUnknown if the trace does not contain
    // it.
    std::uint64_t start_after_ns = kPageUnknown;
    std::string ended;
    std::string program;
    std::string file;
    std::string command;  // command that makes a page of this process alone
    // Index of the device in the file; kPageNoDevice: only this row exists.
    std::size_t device = kPageNoDevice;
    // Memory over the whole job, PageHeat::columns values each: 0, kPageHeatUnknown, or
    // kPageHeatZero + the share of PageHeat::full_bytes in 1/253, rounded up. Empty = not known.
    std::vector<std::uint8_t> reserved_heat;
    std::vector<std::uint8_t> allocated_heat;
};

// A part of a sentence of the job's view.
struct PageNamed {
    std::string text;
    std::vector<std::size_t> ranks =
        {};  // the processes that it names; indices into PageData::ranks
};

// As JobRowKind (job_rows.h). kReport: the sentence of one process's report.
enum class PageJobRowKind : std::uint8_t { kFailure, kHeading, kReport, kRow, kUnreadable };

// A row of the view of a job, as the report prints it.
struct PageJobRow {
    PageJobRowKind kind = PageJobRowKind::kRow;
    std::string label;  // "verdict"; empty: a heading, or the row above goes on
    std::vector<PageNamed> parts;
};

// The common time axis and scale of the rows of a job.
struct PageHeat {
    std::size_t columns = 0;  // 0 = no row has values
    std::uint64_t column_ns = 0;
    std::uint64_t full_bytes = 0;  // the largest peak of all processes; the end of the scale
};

// A device in two runs: A is 0, B is 1.
struct PageComparedDevice {
    DeviceId gpu = 0;
    // Indices of the device in the file; kPageNoDevice: the run does not have it.
    std::array<std::size_t, 2> devices = {kPageNoDevice, kPageNoDevice};
    // When reserved memory first reached its maximum; kPageUnknown: not known.
    std::array<std::uint64_t, 2> peaks_ns = {kPageUnknown, kPageUnknown};
    bool state = false;  // a run is the state at one moment: there is no time to compare
    std::string headline;
    std::string note;  // empty = none
    std::vector<CompareFigure> figures;
    std::vector<LineChange> lines;  // that hold more, then less, then those of unknown change
};

// Two runs side by side, as compare_figures.h and compare_rows.h say it.
struct PageComparison {
    std::array<std::string, 2> runs;
    std::array<std::size_t, 2> processes = {};  // indices into PageData::processes
    std::vector<PageComparedDevice> devices;
    std::vector<ComparePlace> places;  // where the runs differ first
    std::vector<ComparePhase> phases;
    bool phases_equal = false;  // both runs have phases, and none differs
    std::vector<CompareSetting> settings;
};

struct PageUnreadable {
    std::string file;
    std::string reason;
};

// A word that qualifies numbers ("exact", "at least"), and its meaning.
struct PageWord {
    std::string word;
    std::string meaning;
};

// Consecutive lines of a source file (page_sources.h).
struct PageSource {
    std::string file;  // as in PageFrame::file
    std::uint32_t first_line = 1;
    std::vector<std::string> lines;
    bool changed = false;  // the file changed after the recording began
};

struct PageData {
    std::string title;  // document title: of the only process, of the job, or of both runs
    std::vector<PageProcess> processes;
    // The job's processes by rank if the page shows a job; empty for a single process.
    std::vector<PageRank> ranks;
    std::vector<PageJobRow> job;  // what the report says about the job
    PageHeat heat;
    std::vector<PageUnreadable> unreadable;
    std::optional<PageComparison> comparison;  // set if the page compares two runs
    std::vector<PageWord> class_words;         // exact, at least, ...
    std::vector<PageFrame> frames;             // frames of all processes
    std::vector<PageStackNode> stacks;
    std::vector<PageSource> sources;  // by file and line; empty without --sources
    std::vector<PageDevice> devices;  // the page opens with the first
    // Limits of each device, and of the file. What has no room is left out, and the page says so
    // (page_limits.h).
    std::size_t block_budget = 12'000'000;
    std::size_t unit_budget = 1'000'000;
    std::size_t byte_budget = 60'000'000;
    std::size_t bytes_to_come = 0;  // of what is added after the devices, such as `ranks`
};

}  // namespace fragtrace::analyzer
