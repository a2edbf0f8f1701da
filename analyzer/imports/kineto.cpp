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
#include "analyzer/imports/import_stacks.h"
#include "analyzer/imports/import_timeline.h"
#include "analyzer/imports/imports.h"
#include "analyzer/imports/profile_events.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// c10::DeviceType: the processor, and NVIDIA's GPUs.
constexpr std::string_view kProcessor = "0";
constexpr std::string_view kCuda = "1";
// Steps are numbered: "ProfilerStep#12". They are occurrences of one phase.
constexpr std::string_view kStep = "ProfilerStep#";

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

// The profiler cuts the folder of installed packages and the current folder from the front. A file
// of PyTorch gets the folder's name again, so that it counts as a library.
std::string file_of(const std::string& file) {
    return file.starts_with("torch/") ? "site-packages/" + file : file;
}

// Python functions are called "train.py(12): main", all others are native.
PythonCode kineto_frame(const std::string& name, std::uint32_t* line) {
    const std::size_t close = name.find("): ");
    const std::size_t open = name.rfind('(', close);
    if (close != std::string::npos && open != std::string::npos) {
        if (const auto parsed =
                number<std::uint32_t>(std::string_view(name).substr(open + 1, close - open - 1))) {
            *line = *parsed;
            return {.function = name.substr(close + 3),
                    .file = file_of(name.substr(0, open)),
                    .first_line = 0,
                    .native = false};
        }
    }
    return {.function = name, .file = {}, .first_line = 0, .native = true};
}

class KinetoReader {
  public:
    KinetoReader(const std::string& path, const InputFile& file)
        : path_(path), file_(file), timeline_(path, "PyTorch profile") {}

    Result<Timeline> read() {
        std::string problem = read_chrome_events(
            file_, kArguments, [this](const ChromeEvent& event) { take(event); }, &head_);
        if (problem.empty() && profile_.events().empty()) {
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
        const std::uint64_t start_ns = head_.base_ns + profile_.write(&timeline_);
        write_facts();
        Timeline timeline = timeline_.finish(start_ns >= kUnixTimesFrom_ns ? start_ns : 0);
        timeline.codes = profile_.take_codes();
        return timeline;
    }

  private:
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
        if (profile_.events().empty()) {
            process_ = event.pid;
        }
        if (event.pid != process_) {
            ++other_processes_;
            return;
        }
        const bool freed = *signed_bytes < 0;
        const auto size = static_cast<std::uint64_t>(freed ? -*signed_bytes : *signed_bytes);
        ProfileEvent memory;
        if (const auto total = number<std::uint64_t>(allocated); total && *total <= INT64_MAX) {
            memory.allocated = *total;
        }
        EventRecord& record = memory.record;
        record.kind = failed  ? EventKind::kBlockOutOfMemory
                      : freed ? EventKind::kBlockFree
                              : EventKind::kBlockAlloc;
        record.flags = kFlagSegmentUnknown;
        record.time_ns = *time_ns;
        record.device = *id;
        record.thread = number<std::uint32_t>(event.tid).value_or(0);
        record.stream = kStreamUnknown;
        record.address = *at;
        record.size = failed ? size : freed ? 0 : kUnknown64;
        record.extra = failed ? kUnknown64 : size;
        profile_.add(memory);
        std::uint64_t& peak = peak_reserved_[*id];
        peak = std::max(peak, number<std::uint64_t>(reserved).value_or(0));
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
            *duration_ns > kMostTime_ns - *begin_ns) {
            return;
        }
        profile_.add(ProfileSlice{.begin_ns = *begin_ns,
                                  .end_ns = *begin_ns + *duration_ns,
                                  .thread = *thread,
                                  .range = range},
                     range && event.name.starts_with(kStep) ? kStep.substr(0, kStep.size() - 1)
                                                            : std::string_view(event.name));
    }

    void write_facts() {
        TimelineBuilder& builder = timeline_.builder();
        std::string card;
        for (const ChromeDevice& device : head_.devices) {
            const auto id = number<std::uint16_t>(device.id);
            if (!id || !peak_reserved_.contains(*id)) {
                continue;
            }
            builder.add_fact(fmt::format("device.{}.name", *id),
                             printable(device.name.substr(0, kMostNameBytes)));
            if (const auto total = number<std::uint64_t>(device.total_bytes)) {
                card += fmt::format(
                    "{}device {} has {}", card.empty() ? "; " : ", ", *id, format_bytes(*total));
            }
        }
        for (const auto& [id, peak] : peak_reserved_) {
            if (peak != 0) {
                builder.add_fact(reported_reserved_fact(id), std::to_string(peak));
            }
        }
        builder.add_fact("options.stack_depth", std::to_string(kUnknown32));  // no limit
        timeline_.warn_left_out(unreadable_, "memory event", "that cannot be read");
        timeline_.warn_left_out(other_processes_, "memory event", "of other processes");
        timeline_.warn_left_out(other_devices_, "memory event", "of devices other than CUDA");
        timeline_.warn_left_out(
            profile_.slices_left_out(), "slice", "beyond the limits of this command");
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
        if (!profile_.has_stacks()) {
            timeline_.lacks(
                "operators and Python functions. So memory is listed by size, not by line");
        }
    }

    const std::string& path_;
    const InputFile& file_;
    ImportTimeline timeline_;
    ChromeHead head_;
    ProfileEvents profile_{kineto_frame};
    std::string process_;                                   // pid of the first memory event
    std::map<std::uint16_t, std::uint64_t> peak_reserved_;  // by device
    std::uint64_t cpu_events_ = 0;
    std::uint64_t other_devices_ = 0;
    std::uint64_t other_processes_ = 0;
    std::uint64_t unreadable_ = 0;
};

}  // namespace

bool is_kineto_trace(const InputFile& file) {
    return is_chrome_trace(file);
}

Result<Timeline> read_kineto_trace(const std::string& path, const InputFile& file) {
    return KinetoReader(path, file).read();
}

}  // namespace fragtrace::analyzer
