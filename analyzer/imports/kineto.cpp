// The memory events of a trace of PyTorch's profiler (profile_memory=True). The caching allocator
// reports each block to the profiler, which writes an instant event:
//
//   {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1.5, "args": {"Addr": 140, "Bytes":
//    512, "Device Type": 1, "Device Id": 0, "Total Allocated": 512, "Total Reserved": 2097152}}
//
// Bytes are the size of the block, negative if it is freed; both totals follow the event. A failed
// request is "[OutOfMemory]", with its rounded size. The stack of an event is that of the operators
// and Python functions whose slices contain it on its thread.
#include "analyzer/imports/chrome_events.h"
#include "analyzer/imports/import_timeline.h"
#include "analyzer/imports/imports.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostSlices = std::size_t{8} << 20;
constexpr std::size_t kMostNodes = std::size_t{1} << 22;
constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
constexpr std::size_t kMostNameBytes = 1000;
constexpr std::size_t kMostDevices = 31;
// Earlier times (before September 2001) are not taken for unix times.
constexpr std::uint64_t kUnixTimesFrom_ns = 1'000'000'000'000'000'000;
constexpr std::uint64_t kStandInBytes = std::uint64_t{1} << 30;
// c10::DeviceType: the processor, and NVIDIA's GPUs.
constexpr std::string_view kProcessor = "0";
constexpr std::string_view kCuda = "1";

constexpr std::array<std::string_view, 6> kArguments = {
    "Addr", "Bytes", "Device Type", "Device Id", "Total Allocated", "Total Reserved"};

template <typename Number>
std::optional<Number> number(std::string_view text) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty()
               ? std::optional(value)
               : std::nullopt;
}

struct MemoryEvent {
    std::uint64_t time_ns;
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t allocated;  // the totals after the event
    std::uint64_t reserved;
    std::uint32_t thread;
    std::uint16_t device;
    EventKind kind;
};

// An operator, a Python function, or a range of record_function.
struct Slice {
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    std::uint32_t name;
    std::uint32_t thread;
    bool range;
};

// Before the first event of a device, or as its events tell.
struct DeviceStart {
    std::uint64_t older_bytes = 0;  // allocated before the profile
    std::uint64_t peak_reserved = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> older_blocks;  // freed in the profile
    std::uint64_t highest_end = 0;                                      // of all addresses
};

class KinetoReader {
  public:
    KinetoReader(const std::string& path, const InputFile& file)
        : path_(path), file_(file), timeline_(path, "PyTorch profile") {}

    Result<Timeline> read() {
        std::string problem = read_chrome_events(
            file_, kArguments, [this](const ChromeEvent& event) { take(event); }, &head_);
        if (problem.empty() && events_.empty()) {
            problem = cpu_events_ != 0
                          ? "its memory events are all of the CPU, none is of a CUDA device"
                          : "has no memory events";
        }
        if (!problem.empty()) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: {}. Give a trace of PyTorch's profiler that was made "
                                     "with profile_memory=True.",
                                     path_,
                                     problem)};
        }
        std::stable_sort(
            events_.begin(), events_.end(), [](const MemoryEvent& a, const MemoryEvent& b) {
                return a.time_ns < b.time_ns;
            });
        std::stable_sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
            return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
        });
        first_ns_ = events_.front().time_ns;
        if (!slices_.empty()) {
            first_ns_ = std::min(first_ns_, slices_.front().begin_ns);
        }
        find_starts();
        write_starts();
        write_events();
        write_facts();
        const std::uint64_t start_ns = head_.base_ns + first_ns_;
        Timeline timeline = timeline_.finish(start_ns >= kUnixTimesFrom_ns ? start_ns : 0);
        timeline.codes = std::move(codes_);
        return timeline;
    }

  private:
    // ---- reading --------------------------------------------------------------------------------

    void take(const ChromeEvent& event) {
        if (event.phase == "i" && (event.name == "[memory]" || event.name == "[OutOfMemory]")) {
            take_memory(event);
        } else if (event.phase == "X") {
            take_slice(event);
        }
    }

    void take_memory(const ChromeEvent& event) {
        const auto& [address, bytes, type, device, allocated, reserved] =
            std::tie(event.arguments[0],
                     event.arguments[1],
                     event.arguments[2],
                     event.arguments[3],
                     event.arguments[4],
                     event.arguments[5]);
        if (type == kProcessor) {
            ++cpu_events_;
            return;
        }
        if (type != kCuda) {
            ++other_devices_;
            return;
        }
        const bool failed = event.name == "[OutOfMemory]";
        const auto time_ns = chrome_nanoseconds(event.time);
        const auto signed_bytes = number<std::int64_t>(bytes);
        const auto at = failed ? std::optional<std::uint64_t>(0) : number<std::uint64_t>(address);
        const auto id = number<std::uint16_t>(device);
        if (!time_ns || !signed_bytes || *signed_bytes == 0 || !at || (!failed && *at == 0) ||
            !id || *id >= kMostDevices || (failed && *signed_bytes < 0) ||
            *signed_bytes == INT64_MIN) {
            ++unreadable_;
            return;
        }
        if (events_.empty()) {
            process_ = event.pid;
        }
        if (event.pid != process_) {
            ++other_processes_;
            return;
        }
        events_.push_back({.time_ns = *time_ns,
                           .address = *at,
                           .bytes = static_cast<std::uint64_t>(*signed_bytes < 0 ? -*signed_bytes
                                                                                 : *signed_bytes),
                           .allocated = number<std::uint64_t>(allocated).value_or(0),
                           .reserved = number<std::uint64_t>(reserved).value_or(0),
                           .thread = number<std::uint32_t>(event.tid).value_or(0),
                           .device = *id,
                           .kind = failed              ? EventKind::kBlockOutOfMemory
                                   : *signed_bytes > 0 ? EventKind::kBlockAlloc
                                                       : EventKind::kBlockFree});
    }

    void take_slice(const ChromeEvent& event) {
        const bool range = event.category == "user_annotation";
        if (!range && event.category != "cpu_op" && event.category != "python_function") {
            return;
        }
        const auto begin_ns = chrome_nanoseconds(event.time);
        const auto duration_ns = chrome_nanoseconds(event.duration);
        const auto thread = number<std::uint32_t>(event.tid);
        if (!begin_ns || !duration_ns || !thread || *duration_ns == 0 ||
            *duration_ns > kMostChromeTime_ns - *begin_ns) {
            return;
        }
        const auto name = name_number(event.name);
        if (!name || slices_.size() >= kMostSlices) {
            ++slices_left_out_;
            return;
        }
        slices_.push_back({*begin_ns, *begin_ns + *duration_ns, *name, *thread, range});
    }

    std::optional<std::uint32_t> name_number(const std::string& text) {
        std::string name = printable(text.substr(0, kMostNameBytes));
        const auto found = name_numbers_.find(name);
        if (found != name_numbers_.end()) {
            return found->second;
        }
        text_bytes_ += name.size() + sizeof(std::string);
        if (text_bytes_ > kMostTextBytes) {
            return std::nullopt;
        }
        const auto next = static_cast<std::uint32_t>(names_.size());
        names_.push_back(name);
        name_numbers_.emplace(std::move(name), next);
        return next;
    }

    // ---- memory that is older than the profile --------------------------------------------------

    void find_starts() {
        std::map<std::pair<std::uint16_t, std::uint64_t>, bool> live;
        std::map<std::uint16_t, std::uint64_t> allocated;  // by the blocks seen so far
        for (const MemoryEvent& event : events_) {
            const auto [start, is_first] = starts_.try_emplace(event.device);
            DeviceStart& device = start->second;
            device.peak_reserved = std::max(device.peak_reserved, event.reserved);
            if (is_first) {
                const std::uint64_t added = event.kind == EventKind::kBlockAlloc ? event.bytes : 0;
                const std::uint64_t freed = event.kind == EventKind::kBlockFree ? event.bytes : 0;
                device.older_bytes =
                    event.allocated + freed > added ? event.allocated + freed - added : 0;
            }
            if (event.kind == EventKind::kBlockOutOfMemory) {
                continue;
            }
            device.highest_end = std::max(device.highest_end, event.address + event.bytes);
            bool& is_live = live[{event.device, event.address}];
            if (event.kind == EventKind::kBlockFree && !is_live) {
                device.older_blocks.emplace_back(event.address, event.bytes);
            }
            is_live = event.kind == EventKind::kBlockAlloc;
        }
    }

    // Blocks that the profile frees are known. The rest of the older memory becomes one block.
    void write_starts() {
        for (auto& [id, device] : starts_) {
            std::uint64_t known_bytes = 0;
            for (const auto& [address, bytes] : device.older_blocks) {
                if (known_bytes + bytes > device.older_bytes) {
                    break;  // the totals contradict it: it is counted as a free of an unknown block
                }
                known_bytes += bytes;
                write_older(id, address, bytes);
            }
            const std::uint64_t rest = device.older_bytes - known_bytes;
            if (rest != 0) {
                write_older(id, round_up(device.highest_end, kStandInBytes) + kStandInBytes, rest);
            }
            if (device.older_bytes != 0) {
                timeline_.lacks(fmt::format(
                    "the allocations of {} on device {}, which is older than the profile. It is "
                    "shown as allocated at the begin; {} of it, which the profile never frees, is "
                    "shown as one block",
                    format_bytes(device.older_bytes),
                    id,
                    format_bytes(rest)));
            }
        }
    }

    void write_older(std::uint16_t device, std::uint64_t address, std::uint64_t bytes) {
        EventRecord event = {};
        event.kind = EventKind::kBlockAlloc;
        event.flags = kFlagSegmentUnknown;
        event.device = device;
        event.stream = kStreamUnknown;
        event.address = address;
        event.size = kUnknown64;
        event.extra = bytes;
        timeline_.add(event);
    }

    // ---- events, ranges and stacks --------------------------------------------------------------

    void write_events() {
        struct Point {
            std::uint64_t time_ns;
            std::uint32_t slice;
            bool begin;
        };

        std::vector<Point> points;
        for (std::uint32_t i = 0; i < slices_.size(); ++i) {
            if (slices_[i].range) {
                points.push_back({slices_[i].begin_ns, i, true});
                points.push_back({slices_[i].end_ns, i, false});
            }
        }
        std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
            return a.time_ns < b.time_ns;
        });
        std::size_t next = 0;
        const auto write_ranges_to = [&](std::uint64_t time_ns) {
            for (; next < points.size() && points[next].time_ns <= time_ns; ++next) {
                write_range(points[next].slice, points[next].time_ns, points[next].begin);
            }
        };
        for (const MemoryEvent& memory : events_) {
            write_ranges_to(memory.time_ns);
            open_slices_to(memory.time_ns);
            EventRecord event = {};
            event.kind = memory.kind;
            event.flags = kFlagSegmentUnknown;
            event.time_ns = memory.time_ns - first_ns_;
            event.device = memory.device;
            event.thread = memory.thread;
            event.stream = kStreamUnknown;
            event.address = memory.address;
            event.size = memory.kind == EventKind::kBlockAlloc         ? kUnknown64
                         : memory.kind == EventKind::kBlockOutOfMemory ? memory.bytes
                                                                       : 0;
            event.extra = memory.kind == EventKind::kBlockOutOfMemory ? kUnknown64 : memory.bytes;
            event.python_stack = stack_of(memory.thread, memory.time_ns);
            timeline_.add(event);
        }
        write_ranges_to(~std::uint64_t{0});
        if (!nodes_.empty()) {
            timeline_.builder().add_nodes(1, nodes_);
        }
    }

    void write_range(std::uint32_t slice, std::uint64_t time_ns, bool begin) {
        EventRecord event = {};
        event.kind = begin ? EventKind::kRangeBegin : EventKind::kRangeEnd;
        event.device = kDeviceUnknown;
        event.time_ns = time_ns - first_ns_;
        event.thread = slices_[slice].thread;
        event.address = slice + 1;
        event.size = text_number(slices_[slice].name);
        timeline_.add(event);
    }

    // Steps are numbered: "ProfilerStep#12". They are occurrences of one phase.
    std::uint64_t text_number(std::uint32_t name) {
        constexpr std::string_view kStep = "ProfilerStep#";
        const std::string& text = names_[name];
        const std::string shown =
            text.starts_with(kStep) ? std::string(kStep.substr(0, kStep.size() - 1)) : text;
        const auto [found, is_new] = texts_.try_emplace(shown, texts_.size() + 1);
        if (is_new) {
            timeline_.builder().add_fact(fmt::format("text.{}", found->second), shown);
        }
        return found->second;
    }

    // Slices of a thread are nested. Those that ended leave the stack when a later one begins.
    void open_slices_to(std::uint64_t time_ns) {
        for (; next_slice_ < slices_.size() && slices_[next_slice_].begin_ns <= time_ns;
             ++next_slice_) {
            const Slice& slice = slices_[next_slice_];
            std::vector<Open>& open = open_[slice.thread];
            while (!open.empty() && open.back().end_ns <= slice.begin_ns) {
                open.pop_back();
            }
            const std::uint32_t parent = open.empty() ? 0 : open.back().node;
            open.push_back({slice.end_ns, slice.range ? parent : child_of(parent, slice.name)});
        }
    }

    std::uint32_t stack_of(std::uint32_t thread, std::uint64_t time_ns) {
        const auto found = open_.find(thread);
        if (found == open_.end()) {
            return 0;
        }
        std::vector<Open>& open = found->second;
        while (!open.empty() && open.back().end_ns <= time_ns) {
            open.pop_back();
        }
        return open.empty() ? 0 : open.back().node;
    }

    // The node of a frame below a node; the parent itself if there are too many.
    std::uint32_t child_of(std::uint32_t parent, std::uint32_t name) {
        const auto next = static_cast<std::uint32_t>(nodes_.size() + 1);
        if (nodes_.size() >= kMostNodes) {
            return parent;
        }
        const auto [found, is_new] =
            children_.try_emplace(std::uint64_t{parent} << 32 | name, next);
        if (is_new) {
            const auto& [code, line] = frame_of(name);
            nodes_.push_back({.parent = parent,
                              .line = line,
                              .frame = kPythonFrame | std::uint64_t{code} << 32});
        }
        return found->second;
    }

    // Python functions are called "train.py(12): main", all others are native.
    const std::pair<std::uint32_t, std::uint32_t>& frame_of(std::uint32_t name) {
        const auto [found, is_new] = frames_.try_emplace(name);
        if (is_new) {
            const std::string& text = names_[name];
            PythonCode code = {.function = text, .file = {}, .first_line = 0, .native = true};
            std::uint32_t line = 0;
            const std::size_t close = text.find("): ");
            const std::size_t open = text.rfind('(', close);
            if (close != std::string::npos && open != std::string::npos) {
                if (const auto parsed =
                        number<std::uint32_t>(text.substr(open + 1, close - open - 1))) {
                    line = *parsed;
                    code = {.function = text.substr(close + 3),
                            .file = file_of(text.substr(0, open)),
                            .first_line = 0,
                            .native = false};
                }
            }
            const auto [number_of, is_new_code] = code_numbers_.try_emplace(
                {code.function, code.file}, static_cast<std::uint32_t>(codes_.size()));
            if (is_new_code) {
                codes_.push_back(std::move(code));
            }
            found->second = {number_of->second, line};
        }
        return found->second;
    }

    // The profiler cuts the folder of installed packages and the current folder from the front. A
    // file of PyTorch gets the folder's name again, so that it counts as a library.
    static std::string file_of(const std::string& file) {
        return file.starts_with("torch/") ? "site-packages/" + file : file;
    }

    // ---- facts ----------------------------------------------------------------------------------

    void write_facts() {
        TimelineBuilder& builder = timeline_.builder();
        std::string card;
        for (const ChromeDevice& device : head_.devices) {
            const auto id = number<std::uint16_t>(device.id);
            if (!id || !starts_.contains(*id)) {
                continue;
            }
            builder.add_fact(fmt::format("device.{}.name", *id),
                             printable(device.name.substr(0, kMostNameBytes)));
            if (const auto total = number<std::uint64_t>(device.total_bytes)) {
                card += fmt::format(
                    "{}device {} has {}", card.empty() ? "; " : ", ", *id, format_bytes(*total));
            }
        }
        for (const auto& [id, device] : starts_) {
            if (device.peak_reserved != 0) {
                builder.add_fact(reported_reserved_fact(id), std::to_string(device.peak_reserved));
            }
        }
        builder.add_fact("options.stack_depth", std::to_string(kUnknown32));  // no limit
        warn(unreadable_, "memory event", "cannot be read and", "is", "are");
        warn(other_processes_, "memory event", "of other processes", "is", "are");
        warn(other_devices_, "memory event", "of devices other than CUDA", "is", "are");
        warn(slices_left_out_, "slice", "beyond the limits of this command", "is", "are");
        timeline_.lacks_reserved(
            "the segments of the pool and its calls to the driver; only the sum of reserved memory "
            "is known. So holes, cached memory, waste and retries of the recorded run are unknown, "
            "and no replay can be checked against it");
        timeline_.lacks(
            "requested sizes and streams. So waste by rounding is unknown, and replays use the "
            "sizes of the blocks and the default stream");
        timeline_.lacks(
            fmt::format("the free memory of the card{}. So the cause of a failed request is "
                        "unknown, and replays need --capacity to run out of memory",
                        card));
        timeline_.lacks("the settings of the allocator. Replays begin with the defaults");
        if (nodes_.empty()) {
            timeline_.lacks(
                "operators and Python functions. So memory is listed by size, not by line");
        }
    }

    void warn(std::uint64_t count,
              const char* what,
              const char* which,
              const char* one,
              const char* many) {
        if (count != 0) {
            timeline_.warn(fmt::format("{} {}{} {} {} left out",
                                       format_count(count),
                                       what,
                                       count == 1 ? "" : "s",
                                       which,
                                       count == 1 ? one : many));
        }
    }

    struct Open {
        std::uint64_t end_ns;
        std::uint32_t node;
    };

    const std::string& path_;
    const InputFile& file_;
    ImportTimeline timeline_;
    ChromeHead head_;
    std::vector<MemoryEvent> events_;
    std::vector<Slice> slices_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, std::uint32_t> name_numbers_;
    std::size_t text_bytes_ = 0;
    std::string process_;  // pid of the first memory event
    std::uint64_t first_ns_ = 0;
    std::map<std::uint16_t, DeviceStart> starts_;
    std::map<std::string, std::uint64_t> texts_;
    std::size_t next_slice_ = 0;
    std::unordered_map<std::uint32_t, std::vector<Open>> open_;  // by thread
    std::unordered_map<std::uint64_t, std::uint32_t> children_;
    std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> frames_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> code_numbers_;
    std::vector<StackNode> nodes_;
    std::vector<PythonCode> codes_;
    std::uint64_t cpu_events_ = 0;
    std::uint64_t other_devices_ = 0;
    std::uint64_t other_processes_ = 0;
    std::uint64_t unreadable_ = 0;
    std::uint64_t slices_left_out_ = 0;
};

}  // namespace

bool is_kineto_trace(const InputFile& file) {
    return is_chrome_trace(file);
}

Result<Timeline> read_kineto_trace(const std::string& path, const InputFile& file) {
    return KinetoReader(path, file).read();
}

}  // namespace fragtrace::analyzer
