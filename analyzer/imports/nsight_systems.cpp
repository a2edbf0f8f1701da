// The memory events of Nsight Systems, in the database that `nsys export --type sqlite` writes.
//
// The tables are those of the "SQLite Schema Reference" of Nsight Systems. Columns are found by
// name, because releases add columns and leave out others:
//
//   CUDA_GPU_MEMORY_USAGE_EVENTS   one row for each allocation and each free
//   CUPTI_ACTIVITY_KIND_RUNTIME    the call of an event, by its correlationId: thread, stack, error
//   CUDA_CALLCHAINS                stacks; depth 0 is the innermost frame
//   NVTX_EVENTS                    ranges: 59 = push and pop, 60 = start and end
//   StringIds                      texts of the other tables
//
// A globalTid has the process in bits 24 to 47 and the thread in bits 0 to 23; a globalPid has only
// the process.
//
// The events are requests to the driver. Device memory becomes blocks without segments, because the
// file does not say whether a caching allocator divided it: free memory inside is unknown. Other
// memory (managed, pinned, arrays) becomes events of the device layer.
#include "analyzer/imports/import_timeline.h"
#include "analyzer/imports/imports.h"
#include "analyzer/imports/profile_events.h"
#include "analyzer/imports/sqlite_tables.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kMemoryTable = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr std::size_t kMostEvents = std::size_t{1} << 25;
constexpr std::size_t kMostRows = std::size_t{1} << 23;  // kept of any other table
constexpr std::size_t kMostKinds = 1000;
constexpr std::size_t kMostFrames = 1000;  // of one stack
constexpr std::int64_t kOutOfMemory = 2;   // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
constexpr auto kLatest_ns = static_cast<std::int64_t>(kMostTime_ns);

// ENUM_CUDA_MEM_KIND. The numbers are those of all known releases; a table of the file replaces
// them.
enum class MemoryKind : std::uint8_t { kPinned, kDevice, kArray, kManaged, kStatic, kOther };

const std::map<std::string_view, MemoryKind>& kinds_by_name() {
    static const std::map<std::string_view, MemoryKind> kinds = {
        {"CUDA_MEMOPR_MEMORY_KIND_PINNED", MemoryKind::kPinned},
        {"CUDA_MEMOPR_MEMORY_KIND_DEVICE", MemoryKind::kDevice},
        {"CUDA_MEMOPR_MEMORY_KIND_ARRAY", MemoryKind::kArray},
        {"CUDA_MEMOPR_MEMORY_KIND_MANAGED", MemoryKind::kManaged},
        {"CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", MemoryKind::kStatic},
        {"CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", MemoryKind::kStatic},
    };
    return kinds;
}

std::uint32_t process_of(std::int64_t global_id) {
    return static_cast<std::uint32_t>(global_id >> 24 & 0xffffff);
}

std::uint32_t thread_of(std::int64_t global_id) {
    return static_cast<std::uint32_t>(global_id & 0xffffff);
}

bool is_cuda_call(std::string_view function) {
    return function.starts_with("cudaMalloc") || function.starts_with("cudaFree") ||
           function.starts_with("cudaHost") || function.starts_with("cuMem") ||
           function.starts_with("cuArray");
}

// A row of the table of memory events.
struct MemoryRow {
    std::uint64_t time_ns;
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t stream;
    std::int64_t correlation;
    std::uint32_t process;
    std::uint32_t thread;
    std::uint32_t chain;  // call chain; 0 = none
    std::uint16_t device;
    MemoryKind kind;
    bool allocates;
    bool stream_ordered;
};

// A call that the driver refused for lack of memory.
struct FailedCall {
    std::uint64_t time_ns;
    std::int64_t name;
    std::uint32_t thread;
    std::uint32_t chain;
};

struct Frame {
    std::uint32_t chain;
    std::uint32_t depth;
    std::int64_t function;
    std::int64_t module;
};

struct Range {
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    std::uint32_t thread;
    std::int64_t text;  // of StringIds; or -1 - index into explicit texts
};

PythonCode no_frames(const std::string& name, std::uint32_t* /*line*/) {
    return {.function = name, .file = {}, .first_line = 0, .native = true};
}

class NsightReader {
  public:
    NsightReader(const std::string& path, const InputFile& file)
        : path_(path),
          file_size_(file.size()),
          database_(file),
          timeline_(path, "Nsight Systems export") {}

    Result<Timeline> read() {
        read_memory();
        if (problem().empty() && rows_.empty()) {
            problem_ = left_out_[kOther] + left_out_[kUnreadable] == 0
                           ? "its table of CUDA memory events is empty"
                           : "none of its CUDA memory events is one that can be read";
        }
        if (!problem().empty()) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: {}. Record with `nsys profile --cuda-memory-usage=true` "
                                     "and export with `nsys export --type sqlite`.",
                                     path_,
                                     problem())};
        }
        choose_process();
        read_calls();
        read_chains();
        read_ranges();
        read_strings();
        const std::uint64_t session_ns = read_session_start();
        read_devices();
        if (!problem().empty()) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: {}. Export the report again with `nsys export --type "
                                     "sqlite`.",
                                     path_,
                                     problem())};
        }
        make_stacks();
        add_events();
        add_failed_calls();
        add_ranges();
        const std::uint64_t first_ns = profile_.write(&timeline_);
        say_what_is_missing();
        const std::uint64_t start_ns = session_ns + first_ns;
        Timeline timeline = timeline_.finish(start_ns >= kUnixTimesFrom_ns ? start_ns : 0);
        timeline.codes = profile_.take_codes();
        return timeline;
    }

  private:
    enum LeftOut : std::uint8_t { kUnreadable, kOther, kProcesses, kLimits, kLeftOutCount };

    [[nodiscard]] const std::string& problem() const {
        return problem_.empty() ? database_.problem() : problem_;
    }

    // ---- memory events --------------------------------------------------------------------------

    void read_memory() {
        const std::set<std::string> there = database_.columns(kMemoryTable);
        if (!problem().empty()) {
            return;
        }
        if (there.empty()) {
            problem_ = fmt::format("has no CUDA memory events (table {})", kMemoryTable);
            return;
        }
        constexpr std::array<std::string_view, 11> kColumns = {"start",
                                                               "address",
                                                               "bytes",
                                                               "memKind",
                                                               "memoryOperationType",
                                                               "deviceId",
                                                               "globalPid",
                                                               "correlationId",
                                                               "streamId",
                                                               "localMemoryPoolAddress",
                                                               "importedMemoryPoolAddress"};
        constexpr std::size_t kNeeded = 5;
        for (std::size_t i = 0; i < kNeeded; ++i) {
            if (!there.contains(std::string(kColumns[i]))) {
                problem_ = fmt::format("its table {} has no column {}", kMemoryTable, kColumns[i]);
                return;
            }
        }
        read_kinds();
        database_.read(kMemoryTable, kColumns, [this](const SqliteRow& row) {
            if (rows_.size() >= std::min<std::uint64_t>(kMostEvents, file_size_ / 8)) {
                problem_ = fmt::format(
                    "has more than {} memory events, more than this command "
                    "reads",
                    format_count(rows_.size()));
                return false;
            }
            take_memory(row);
            return true;
        });
    }

    void read_kinds() {
        constexpr std::array<std::string_view, 2> kColumns = {"id", "name"};
        std::map<std::int64_t, MemoryKind> kinds;
        database_.read("ENUM_CUDA_MEM_KIND", kColumns, [&kinds](const SqliteRow& row) {
            const auto found = kinds_by_name().find(row.text(1).value_or(""));
            if (found != kinds_by_name().end() && row.number(0)) {
                kinds[*row.number(0)] = found->second;
            }
            return kinds.size() < kMostKinds;
        });
        if (!kinds.empty()) {
            kinds_ = std::move(kinds);
        }
        database_.read("ENUM_CUDA_DEV_MEM_EVENT_OPER", kColumns, [this](const SqliteRow& row) {
            const std::string_view name = row.text(1).value_or("");
            if (name == "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION") {
                allocation_ = row.number(0).value_or(allocation_);
            } else if (name == "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION") {
                deallocation_ = row.number(0).value_or(deallocation_);
            }
            return true;
        });
    }

    void take_memory(const SqliteRow& row) {
        const auto time_ns = row.number(0);
        const auto address = row.number(1);
        const auto bytes = row.number(2);
        const auto kind = row.number(3);
        const auto operation = row.number(4);
        const std::int64_t device = row.number(5).value_or(0);
        if (!time_ns || *time_ns < 0 || *time_ns > kLatest_ns || !address || *address == 0 ||
            !bytes || *bytes <= 0 || !kind || !operation || device < 0 ||
            device >= static_cast<std::int64_t>(kMostDevices) ||
            (*operation != allocation_ && *operation != deallocation_)) {
            ++left_out_[kUnreadable];
            return;
        }
        const auto known = kinds_.find(*kind);
        const MemoryKind memory = known == kinds_.end() ? MemoryKind::kOther : known->second;
        if (memory == MemoryKind::kStatic && *operation == allocation_) {
            static_bytes_ += static_cast<std::uint64_t>(*bytes);
        }
        if (memory == MemoryKind::kStatic || memory == MemoryKind::kOther) {
            left_out_[kOther] += memory == MemoryKind::kOther ? 1 : 0;
            return;
        }

        rows_.push_back(
            {.time_ns = static_cast<std::uint64_t>(*time_ns),
             .address = static_cast<std::uint64_t>(*address),
             .bytes = static_cast<std::uint64_t>(*bytes),
             .stream = row.number(8) ? static_cast<std::uint64_t>(*row.number(8)) : kStreamUnknown,
             .correlation = row.number(7).value_or(0),
             .process = process_of(row.number(6).value_or(0)),
             .thread = 0,
             .chain = 0,
             .device = static_cast<std::uint16_t>(device),
             .kind = memory,
             .allocates = *operation == allocation_,
             .stream_ordered = row.number(9).value_or(0) != 0 || row.number(10).value_or(0) != 0});
    }

    // A recording of several processes becomes the timeline of the one with most memory events.
    void choose_process() {
        std::map<std::uint32_t, std::uint64_t> events;
        for (const MemoryRow& row : rows_) {
            ++events[row.process];
        }
        process_ = std::max_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                   })->first;
        left_out_[kProcesses] =
            std::erase_if(rows_, [this](const MemoryRow& row) { return row.process != process_; });
        for (const auto& [process, count] : events) {
            if (process != process_ && other_processes_.size() < 8) {
                other_processes_.push_back(process);
            }
        }
    }

    // ---- what the other tables say about the events ---------------------------------------------

    void read_calls() {
        std::unordered_map<std::int64_t, std::vector<std::uint32_t>> by_correlation;
        for (std::uint32_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].correlation != 0) {
                by_correlation[rows_[i].correlation].push_back(i);
            }
        }
        constexpr std::array<std::string_view, 6> kColumns = {
            "correlationId", "globalTid", "start", "nameId", "returnValue", "callchainId"};
        knows_errors_ = database_.columns("CUPTI_ACTIVITY_KIND_RUNTIME").contains("returnValue");
        database_.read("CUPTI_ACTIVITY_KIND_RUNTIME", kColumns, [&](const SqliteRow& row) {
            const std::int64_t global_id = row.number(1).value_or(0);
            if (process_of(global_id) != process_) {
                return true;
            }
            const std::int64_t chain = row.number(5).value_or(0);
            const auto chain_number = chain > 0 && chain < kUnknown32
                                          ? static_cast<std::uint32_t>(chain)
                                          : std::uint32_t{0};
            const std::int64_t start = row.number(2).value_or(-1);
            if (row.number(4) == kOutOfMemory && start >= 0 && start <= kLatest_ns) {
                if (failed_.size() < kMostRows) {
                    failed_.push_back({.time_ns = static_cast<std::uint64_t>(start),
                                       .name = row.number(3).value_or(-1),
                                       .thread = thread_of(global_id),
                                       .chain = chain_number});
                } else {
                    ++left_out_[kLimits];
                }
            }
            const auto found = by_correlation.find(row.number(0).value_or(0));
            if (found != by_correlation.end()) {
                for (const std::uint32_t index : found->second) {
                    rows_[index].thread = thread_of(global_id);
                    rows_[index].chain = chain_number;
                }
                // A number belongs to one call. Repeated numbers would take quadratic time.
                by_correlation.erase(found);
            }
            return true;
        });
    }

    void read_chains() {
        std::set<std::uint32_t> wanted;
        for (const MemoryRow& row : rows_) {
            wanted.insert(row.chain);
        }
        for (const FailedCall& call : failed_) {
            wanted.insert(call.chain);
        }
        wanted.erase(0);
        if (wanted.empty()) {
            return;
        }
        constexpr std::array<std::string_view, 4> kColumns = {
            "id", "stackDepth", "symbol", "module"};
        database_.read("CUDA_CALLCHAINS", kColumns, [&](const SqliteRow& row) {
            const std::int64_t chain = row.number(0).value_or(0);
            const std::int64_t depth = row.number(1).value_or(-1);
            if (chain <= 0 || chain >= kUnknown32 || depth < 0 ||
                depth >= static_cast<std::int64_t>(kMostFrames) ||
                !wanted.contains(static_cast<std::uint32_t>(chain))) {
                return true;
            }
            if (frames_.size() >= kMostRows) {
                ++left_out_[kLimits];
                return true;
            }
            frames_.push_back({.chain = static_cast<std::uint32_t>(chain),
                               .depth = static_cast<std::uint32_t>(depth),
                               .function = row.number(2).value_or(-1),
                               .module = row.number(3).value_or(-1)});
            return true;
        });
        // Outermost first, as stacks are made.
        std::sort(frames_.begin(), frames_.end(), [](const Frame& a, const Frame& b) {
            return a.chain != b.chain ? a.chain < b.chain : a.depth > b.depth;
        });
    }

    void read_ranges() {
        constexpr std::array<std::string_view, 6> kColumns = {
            "eventType", "start", "end", "globalTid", "textId", "text"};
        database_.read("NVTX_EVENTS", kColumns, [this](const SqliteRow& row) {
            const std::int64_t type = row.number(0).value_or(0);
            const std::int64_t begin = row.number(1).value_or(-1);
            const std::int64_t end = row.number(2).value_or(-1);
            const std::int64_t global_id = row.number(3).value_or(0);
            if ((type != 59 && type != 60) || process_of(global_id) != process_ || begin < 0 ||
                end <= begin || end > kLatest_ns) {
                return true;
            }
            std::int64_t text = row.number(4).value_or(-1);
            if (text < 0) {
                const auto number =
                    profile_.stacks().text_number(row.text(5).value_or(std::string_view()));
                text = number ? -2 - std::int64_t{*number} : -1;
            }
            if (ranges_.size() >= kMostRows || text == -1) {
                ++left_out_[kLimits];
                return true;
            }
            ranges_.push_back({.begin_ns = static_cast<std::uint64_t>(begin),
                               .end_ns = static_cast<std::uint64_t>(end),
                               .thread = thread_of(global_id),
                               .text = text});
            return true;
        });
    }

    void read_strings() {
        for (const Frame& frame : frames_) {
            texts_.try_emplace(frame.function);
            texts_.try_emplace(frame.module);
        }
        for (const FailedCall& call : failed_) {
            texts_.try_emplace(call.name);
        }
        for (const Range& range : ranges_) {
            texts_.try_emplace(range.text);
        }
        constexpr std::array<std::string_view, 2> kColumns = {"id", "value"};
        database_.read("StringIds", kColumns, [this](const SqliteRow& row) {
            const auto found = row.number(0) ? texts_.find(*row.number(0)) : texts_.end();
            if (found != texts_.end() && found->first >= 0) {
                found->second = profile_.stacks().text_number(row.text(1).value_or(""));
            }
            return true;
        });
    }

    // The text with this id; empty if the file does not have it.
    [[nodiscard]] std::string text(std::int64_t id) {
        if (id <= -2) {
            return profile_.stacks().text(static_cast<std::uint32_t>(-2 - id));
        }
        const auto found = texts_.find(id);
        return found == texts_.end() || !found->second ? std::string()
                                                       : profile_.stacks().text(*found->second);
    }

    std::uint64_t read_session_start() {
        constexpr std::array<std::string_view, 1> kColumns = {"utcEpochNs"};
        std::int64_t start_ns = 0;
        database_.read(
            "TARGET_INFO_SESSION_START_TIME", kColumns, [&start_ns](const SqliteRow& row) {
                start_ns = row.number(0).value_or(0);
                return false;
            });
        return start_ns > 0 && start_ns <= kLatest_ns ? static_cast<std::uint64_t>(start_ns) : 0;
    }

    // The number of a GPU in the machine, by the CUDA device of the process.
    void read_devices() {
        std::map<std::int64_t, std::int64_t> cuda_devices;  // by GPU
        constexpr std::array<std::string_view, 3> kColumns = {"gpuId", "cudaId", "pid"};
        database_.read("TARGET_INFO_CUDA_DEVICE", kColumns, [&](const SqliteRow& row) {
            if (row.number(0) && row.number(1) && row.number(2).value_or(0) == process_) {
                cuda_devices[*row.number(0)] = *row.number(1);
            }
            return cuda_devices.size() < kMostDevices;
        });
        std::set<std::uint16_t> used;
        for (const MemoryRow& row : rows_) {
            used.insert(row.device);
        }
        constexpr std::array<std::string_view, 3> kGpu = {"id", "name", "totalMemory"};
        database_.read("TARGET_INFO_GPU", kGpu, [&](const SqliteRow& row) {
            const std::int64_t gpu = row.number(0).value_or(-1);
            const auto found = cuda_devices.find(gpu);
            const std::int64_t device = cuda_devices.empty()          ? gpu
                                        : found == cuda_devices.end() ? -1
                                                                      : found->second;
            // Each device is described once.
            if (device < 0 || device >= static_cast<std::int64_t>(kMostDevices) ||
                used.erase(static_cast<std::uint16_t>(device)) == 0) {
                return true;
            }
            timeline_.builder().add_fact(fmt::format("device.{}.name", device),
                                         printable(row.text(1).value_or("").substr(0, 200)));
            if (row.number(2).value_or(0) > 0) {
                card_ += fmt::format("{}device {} has {}",
                                     card_.empty() ? "; " : ", ",
                                     device,
                                     format_bytes(static_cast<std::uint64_t>(*row.number(2))));
            }
            return true;
        });
    }

    // ---- the timeline ---------------------------------------------------------------------------

    void make_stacks() {
        ImportStacks& stacks = profile_.stacks();
        for (const Frame& frame : frames_) {
            std::string function = text(frame.function);
            // The innermost frames are those of the CUDA call itself.
            if (is_cuda_call(function)) {
                continue;
            }
            const PythonCode code = {.function = function.empty() ? "?" : std::move(function),
                                     .file = text(frame.module),
                                     .first_line = 0,
                                     .native = true};
            std::uint32_t& stack = chains_[frame.chain];
            stack = stacks.stack(stack, stacks.frame_number(code, 0));
        }
    }

    [[nodiscard]] std::uint32_t stack_of_chain(std::uint32_t chain) const {
        const auto found = chains_.find(chain);
        return found == chains_.end() ? 0 : found->second;
    }

    static EventKind kind_of(const MemoryRow& row) {
        switch (row.kind) {
            case MemoryKind::kPinned:
                return row.allocates ? EventKind::kHostAlloc : EventKind::kHostFree;
            case MemoryKind::kArray:
                return row.allocates ? EventKind::kArrayAlloc : EventKind::kArrayFree;
            case MemoryKind::kManaged:
                return row.allocates ? EventKind::kManagedAlloc : EventKind::kDeviceFree;
            default:
                return row.allocates ? EventKind::kBlockAlloc : EventKind::kBlockFree;
        }
    }

    void add_events() {
        for (const MemoryRow& row : rows_) {
            ProfileEvent event;
            EventRecord& record = event.record;
            record.kind = kind_of(row);
            record.time_ns = row.time_ns;
            record.device = row.device;
            record.thread = row.thread;
            record.stream = kStreamUnknown;
            record.address = row.address;
            record.size = row.allocates ? row.bytes : 0;
            record.python_stack = stack_of_chain(row.chain);
            if (row.kind == MemoryKind::kDevice) {
                record.flags = kFlagSegmentUnknown;
                record.stream = row.stream;
                record.extra = row.bytes;
                async_ = async_ || row.stream_ordered;
            }
            profile_.add(event);
        }
    }

    // A failed call has no row in the table of memory events, so its size and device are unknown.
    void add_failed_calls() {
        std::set<std::uint16_t> devices;
        for (const MemoryRow& row : rows_) {
            devices.insert(row.device);
        }
        for (const FailedCall& call : failed_) {
            const std::string name = text(call.name);
            if (name.starts_with("cudaGetLastError") || name.starts_with("cudaPeekAtLastError")) {
                continue;  // they repeat the error of the call before
            }
            ++failed_calls_;
            if (devices.size() != 1) {
                continue;
            }
            // "cudaMalloc_v3020": the release that introduced the function.
            ProfileEvent event;
            EventRecord& record = event.record;
            record.kind = EventKind::kCallOutOfMemory;
            record.time_ns = call.time_ns;
            record.device = *devices.begin();
            record.thread = call.thread;
            record.stream = kStreamUnknown;
            record.size = timeline_.text_number(name.substr(0, name.find("_v")));
            record.extra = static_cast<std::uint64_t>(kOutOfMemory);
            record.python_stack = stack_of_chain(call.chain);
            profile_.add(event);
        }
    }

    void add_ranges() {
        for (const Range& range : ranges_) {
            const std::string name = text(range.text);
            if (!name.empty()) {
                profile_.add(ProfileSlice{.begin_ns = range.begin_ns,
                                          .end_ns = range.end_ns,
                                          .thread = range.thread,
                                          .range = true},
                             name);
            }
        }
    }

    void say_what_is_missing() {
        TimelineBuilder& builder = timeline_.builder();
        builder.add_fact("options.stack_depth", std::to_string(kUnknown32));  // no limit
        timeline_.warn_left_out(left_out_[kUnreadable], "memory event", "that cannot be read");
        timeline_.warn_left_out(left_out_[kOther], "memory event", "of unknown or pageable memory");
        timeline_.warn_left_out(left_out_[kProcesses],
                                "memory event",
                                fmt::format("of other processes (pid {}{})",
                                            fmt::join(other_processes_, ", "),
                                            other_processes_.size() == 8 ? " and maybe more" : ""));
        timeline_.warn_left_out(left_out_[kLimits] + profile_.slices_left_out(),
                                "row",
                                "beyond the limits of this command");
        timeline_.lacks_reserved(
            "the blocks of a caching allocator: the events are requests to the driver. If the "
            "program used such an allocator (PyTorch, RMM, TensorFlow), each allocation here is a "
            "whole segment of its pool, and free memory inside is counted as allocated. So holes, "
            "cached memory, waste and retries are unknown, and no replay can be checked");
        if (failed_calls_ != 0) {
            timeline_.lacks_failures(fmt::format(
                "the sizes of failed requests. {} failed for lack of memory, and no replay can say "
                "why",
                format_counted(failed_calls_, "call", "calls")));
        } else if (!knows_errors_) {
            timeline_.lacks_failures("failed requests");
        }
        timeline_.lacks(fmt::format(
            "the free memory of the card, and memory that no allocation call requested: "
            "contexts, libraries, other processes{}",
            card_));
        if (static_bytes_ != 0) {
            timeline_.lacks(
                fmt::format("{} of variables that programs load into device memory: "
                            "Nsight Systems lists them, but no call requested them",
                            format_bytes(static_bytes_)));
        }
        if (async_) {
            timeline_.lacks(
                "the moment at which a stream-ordered free takes effect. The memory counts as free "
                "from the call");
        }
        if (chains_.empty()) {
            timeline_.lacks(
                "stacks (nsys profile --cudabacktrace=memory). So memory is listed by size, not "
                "by line");
        }
    }

    const std::string& path_;
    std::uint64_t file_size_;
    SqliteTables database_;
    ImportTimeline timeline_;
    ProfileEvents profile_{no_frames};
    std::string problem_;
    std::map<std::int64_t, MemoryKind> kinds_ = {{1, MemoryKind::kPinned},
                                                 {2, MemoryKind::kDevice},
                                                 {3, MemoryKind::kArray},
                                                 {4, MemoryKind::kManaged},
                                                 {5, MemoryKind::kStatic},
                                                 {6, MemoryKind::kStatic}};
    std::int64_t allocation_ = 0;
    std::int64_t deallocation_ = 1;
    std::vector<MemoryRow> rows_;
    std::uint32_t process_ = 0;
    std::vector<std::uint32_t> other_processes_;
    std::vector<FailedCall> failed_;
    std::vector<Frame> frames_;
    std::vector<Range> ranges_;
    std::unordered_map<std::int64_t, std::optional<std::uint32_t>> texts_;  // by id
    std::unordered_map<std::uint32_t, std::uint32_t> chains_;               // stack by call chain
    std::array<std::uint64_t, kLeftOutCount> left_out_ = {};
    std::uint64_t static_bytes_ = 0;
    std::uint64_t failed_calls_ = 0;
    std::string card_;
    bool knows_errors_ = false;
    bool async_ = false;
};

}  // namespace

bool is_nsight_export(const InputFile& file) {
    if (!looks_like_sqlite(file)) {
        return false;
    }
    // Other programs write SQLite databases, too, fragtrace among them.
    SqliteTables database(file);
    constexpr std::array<std::string_view, 4> kTables = {
        kMemoryTable, "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", "ANALYSIS_FILE"};
    return std::any_of(
               kTables.begin(),
               kTables.end(),
               [&database](std::string_view table) { return !database.columns(table).empty(); }) ||
           !database.problem().empty();
}

Result<Timeline> read_nsight_export(const std::string& path, const InputFile& file) {
    return NsightReader(path, file).read();
}

}  // namespace fragtrace::analyzer
