// The memory events of a profile of TensorFlow or JAX: an XSpace message (tsl/profiler/protobuf/
// xplane.proto), *.xplane.pb. XLA's and TensorFlow's BFC allocators report each chunk as an event
// of the thread that asked for it, in a plane of the host:
//
//   XSpace  1 planes                            XLine   1 id, 3 timestamp_ns, 4 events
//   XPlane  2 name, 3 lines,                    XEvent  1 metadata_id, 2 offset_ps, 3 duration_ps,
//           4 event_metadata, 5 stat_metadata,          4 stats
//           6 stats                             XStat   1 metadata_id, 2 double, 3 uint64, 4 int64,
//   metadata: a map from a number to 2 name             5 str, 7 ref (a stat's name)
//
// "MemoryAllocation" and "MemoryDeallocation" have the stats of kStats; the totals follow the
// event. The other events of the thread are its operators and functions. Those with the stat _r are
// the steps of training. The names of a plane follow its lines in the file, so it is read twice.
#include "analyzer/imports/import_stacks.h"
#include "analyzer/imports/import_timeline.h"
#include "analyzer/imports/imports.h"
#include "analyzer/imports/profile_events.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/protobuf.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostTextBytes = std::size_t{64} << 10;
constexpr std::size_t kMostPlanes = 10'000;
constexpr std::size_t kMostNamesBytes = std::size_t{64} << 20;  // of one plane, with their ids
constexpr std::size_t kMostStats = 1000;                        // of one event
constexpr std::size_t kMostAllocators = 100;
constexpr std::uint64_t kMostTotal = std::uint64_t{1} << 60;  // bytes, of each of three summands

// The stats of a memory event that are read.
enum Stat : std::uint8_t {
    kAllocator,
    kAddress,
    kRequested,
    kBytes,
    kAllocated,
    kReserved,
    kAvailable,
    kFragmentation,
    kOperator,
    kStepNumber,
    kRoot,
    kStatCount,
};

constexpr std::array<std::string_view, kStatCount> kStats = {"allocator_name",
                                                             "addr",
                                                             "requested_bytes",
                                                             "allocation_bytes",
                                                             "bytes_allocated",
                                                             "bytes_reserved",
                                                             "bytes_available",
                                                             "fragmentation",
                                                             "tf_op",
                                                             "step_num",
                                                             "_r"};

bool is_plane_name(std::string_view name) {
    return name.starts_with("/host:") || name.starts_with("/device:") || name == "Task Environment";
}

// "GPU_0_bfc" -> 0. The allocators of the host have no such number in their names.
std::optional<std::uint16_t> gpu_of(std::string_view allocator) {
    for (const std::string_view prefix : {"GPU_", "gpu_", "GPU:", "gpu:"}) {
        const std::size_t at = allocator.find(prefix);
        if (at == std::string_view::npos) {
            continue;
        }
        const std::string_view digits = allocator.substr(at + prefix.size());
        std::uint16_t value = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec ==
                std::errc() &&
            value < kMostDevices) {
            return value;
        }
    }
    return std::nullopt;
}

// Python functions are called "$train.py:12 main", all others are native.
PythonCode xla_frame(const std::string& name, std::uint32_t* line) {
    const std::size_t space = name.find(' ');
    const std::size_t colon = name.rfind(':', space);
    if (name.starts_with('$') && space != std::string::npos && colon != std::string::npos &&
        std::from_chars(name.data() + colon + 1, name.data() + space, *line).ec == std::errc()) {
        return {.function = name.substr(space + 1),
                .file = name.substr(1, colon - 1),
                .first_line = 0,
                .native = false};
    }
    return {.function = name, .file = {}, .first_line = 0, .native = true};
}

// The names of one plane.
struct Names {
    std::unordered_map<std::uint64_t, std::string> events;
    std::unordered_map<std::uint64_t, std::string> stats;

    [[nodiscard]] const std::string* event(std::uint64_t id) const {
        const auto found = events.find(id);
        return found == events.end() ? nullptr : &found->second;
    }
};

struct StatValue {
    std::optional<std::uint64_t> number;
    std::optional<double> real;
    std::string text;
};

// What is known of an allocator.
struct Allocator {
    std::string name;
    std::uint64_t events = 0;
    std::uint64_t limit_bytes = 0;
    double fragmentation = -1;  // the largest; negative = unknown
    std::optional<std::uint16_t> device;
};

class XlaReader {
  public:
    XlaReader(const std::string& path, const InputFile& file)
        : path_(path), file_(file), timeline_(path, "XLA profile") {}

    Result<Timeline> read() {
        std::string problem = read_names();
        if (problem.empty() && memory_plane_ == kNone) {
            problem = "has no memory events";
        }
        if (problem.empty()) {
            problem = read_lines();
        }
        if (problem.empty() && profile_.events().empty()) {
            problem = "none of its memory events can be read";
        }
        if (!problem.empty()) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: {}. Give an .xplane.pb file of TensorFlow's or JAX's "
                                     "profiler (host_tracer_level 2 or more) of a run that used "
                                     "the BFC allocator.",
                                     path_,
                                     problem)};
        }
        choose_devices();
        const std::uint64_t first_ns = profile_.write(&timeline_);
        say_what_is_missing();
        const std::uint64_t start_ns =
            first_ns >= kUnixTimesFrom_ns ? first_ns : session_start_ns_ + first_ns;
        Timeline timeline = timeline_.finish(
            start_ns >= kUnixTimesFrom_ns && start_ns <= kMostTime_ns ? start_ns : 0);
        timeline.codes = profile_.take_codes();
        return timeline;
    }

  private:
    static constexpr std::size_t kNone = ~std::size_t{0};

    // ---- first reading: names -------------------------------------------------------------------

    std::string read_names() {
        ProtoReader reader(file_);
        std::size_t plane = 0;
        while (const auto field = reader.next(ProtoReader::kEndOfFile)) {
            if (!field->is_bytes || field->number != 1) {
                reader.skip(*field);
                continue;
            }
            if (plane >= kMostPlanes) {
                return fmt::format("has more than {} planes", kMostPlanes);
            }
            read_names_of_plane(&reader, reader.offset() + field->value, plane);
            ++plane;
        }
        return reader.problem();
    }

    void read_names_of_plane(ProtoReader* reader, std::uint64_t end, std::size_t plane) {
        Names names;
        std::string name;
        bool has_memory = false;
        constexpr std::size_t kNameBytes = 64;  // of an entry without its text
        std::size_t names_bytes = 0;
        std::uint64_t names_left_out = 0;
        std::vector<std::pair<std::uint64_t, StatValue>> stats;
        while (const auto field = reader->next(end)) {
            if (field->is_bytes && field->number == 2) {
                name = reader->text(*field, kMostTextBytes);
            } else if (field->is_bytes && (field->number == 4 || field->number == 5)) {
                auto& map = field->number == 4 ? names.events : names.stats;
                auto [id, text] = read_name(reader, reader->offset() + field->value);
                has_memory = has_memory || (field->number == 4 && (text == "MemoryAllocation" ||
                                                                   text == "MemoryDeallocation"));
                names_bytes += text.size() + kNameBytes;
                if (names_bytes <= kMostNamesBytes) {
                    map[id] = std::move(text);
                } else {
                    ++names_left_out;
                }
            } else if (field->is_bytes && field->number == 6 && stats.size() < kMostStats) {
                stats.push_back(read_stat(reader, reader->offset() + field->value));
            } else {
                reader->skip(*field);
            }
        }
        if (name == "Task Environment") {
            for (const auto& [id, value] : stats) {
                const auto found = names.stats.find(id);
                if (found != names.stats.end() && found->second == "profile_start_time") {
                    session_start_ns_ = std::min(value.number.value_or(0), kMostTime_ns);
                }
            }
        }
        if (has_memory && name.starts_with("/host:")) {
            if (memory_plane_ == kNone) {
                memory_plane_ = plane;
                names_ = std::move(names);
                names_left_out_ = names_left_out;
            } else {
                ++other_planes_;
            }
        }
    }

    // An entry of a map: 1 is the number, 2 a message with the name in its field 2.
    std::pair<std::uint64_t, std::string> read_name(ProtoReader* reader, std::uint64_t end) {
        std::pair<std::uint64_t, std::string> entry;
        while (const auto field = reader->next(end)) {
            if (field->number == 1 && !field->is_bytes) {
                entry.first = field->value;
            } else if (field->number == 2 && field->is_bytes) {
                const std::uint64_t end_of_value = reader->offset() + field->value;
                while (const auto member = reader->next(end_of_value)) {
                    if (member->number == 2 && member->is_bytes) {
                        entry.second = reader->text(*member, kMostTextBytes);
                    } else {
                        reader->skip(*member);
                    }
                }
            } else {
                reader->skip(*field);
            }
        }
        if (entry.second.size() > kMostNameBytes) {
            entry.second.resize(kMostNameBytes);
        }
        return entry;
    }

    std::pair<std::uint64_t, StatValue> read_stat(ProtoReader* reader, std::uint64_t end) {
        std::pair<std::uint64_t, StatValue> stat;
        while (const auto field = reader->next(end)) {
            if (field->number == 1) {
                stat.first = field->value;
            } else if (field->number == 2) {
                stat.second.real = std::bit_cast<double>(field->value);
            } else if (field->number == 3 || field->number == 4) {
                stat.second.number = field->value;
            } else if (field->number == 5 && field->is_bytes) {
                stat.second.text = reader->text(*field, kMostTextBytes);
                continue;
            } else if (field->number == 7) {
                const auto found = names_.stats.find(field->value);
                stat.second.text = found == names_.stats.end() ? std::string() : found->second;
            }
            reader->skip(*field);
        }
        return stat;
    }

    // ---- second reading: events -----------------------------------------------------------------

    std::string read_lines() {
        for (const auto& [id, name] : names_.stats) {
            const auto* const found = std::find(kStats.begin(), kStats.end(), name);
            if (found != kStats.end()) {
                stat_ids_[id] = static_cast<Stat>(found - kStats.begin());
            }
        }
        ProtoReader reader(file_);
        std::size_t plane = 0;
        while (const auto field = reader.next(ProtoReader::kEndOfFile)) {
            if (!field->is_bytes || field->number != 1 || plane++ != memory_plane_) {
                reader.skip(*field);
                continue;
            }
            const std::uint64_t end = reader.offset() + field->value;
            while (const auto member = reader.next(end)) {
                if (member->is_bytes && member->number == 3) {
                    read_line(&reader, reader.offset() + member->value);
                } else {
                    reader.skip(*member);
                }
            }
        }
        return reader.problem();
    }

    void read_line(ProtoReader* reader, std::uint64_t end) {
        ++line_;
        line_begin_ns_ = 0;
        thread_ = line_;
        while (const auto field = reader->next(end)) {
            if (field->number == 1 && !field->is_bytes) {
                // Newer releases number threads by hashes.
                thread_ =
                    field->value < kUnknown32 ? static_cast<std::uint32_t>(field->value) : line_;
            } else if (field->number == 3 && !field->is_bytes) {
                line_begin_ns_ = std::min(field->value, kMostTime_ns);
            } else if (field->number == 4 && field->is_bytes) {
                read_event(reader, reader->offset() + field->value);
            } else {
                reader->skip(*field);
            }
        }
    }

    void read_event(ProtoReader* reader, std::uint64_t end) {
        std::uint64_t id = 0;
        std::uint64_t offset_ps = 0;
        std::uint64_t duration_ps = 0;
        std::array<StatValue, kStatCount> stats;
        std::array<bool, kStatCount> there = {};
        while (const auto field = reader->next(end)) {
            if (field->number == 4 && field->is_bytes) {
                auto [stat_id, value] = read_stat(reader, reader->offset() + field->value);
                const auto known = stat_ids_.find(stat_id);
                if (known != stat_ids_.end()) {
                    there[known->second] = true;
                    stats[known->second] = std::move(value);
                }
                continue;
            }
            if (!field->is_bytes) {
                id = field->number == 1 ? field->value : id;
                offset_ps = field->number == 2 ? field->value : offset_ps;
                duration_ps = field->number == 3 ? field->value : duration_ps;
            }
            reader->skip(*field);
        }
        const std::string* const name = names_.event(id);
        if (!reader->problem().empty() || name == nullptr) {
            return;
        }
        const std::uint64_t begin_ns = line_begin_ns_ + offset_ps / 1000;
        const bool allocation = *name == "MemoryAllocation";
        if (allocation || *name == "MemoryDeallocation") {
            take_memory(allocation, begin_ns, stats);
            return;
        }
        if (duration_ps >= 1000 && begin_ns <= kMostTime_ns && duration_ps / 1000 <= kMostTime_ns) {
            profile_.add(ProfileSlice{.begin_ns = begin_ns,
                                      .end_ns = begin_ns + duration_ps / 1000,
                                      .thread = thread_,
                                      .range = there[kRoot] || there[kStepNumber]},
                         *name);
        }
    }

    void take_memory(bool allocation,
                     std::uint64_t time_ns,
                     const std::array<StatValue, kStatCount>& stats) {
        const auto number = [&stats](Stat stat) { return stats[stat].number; };
        const auto allocator = allocator_number(stats[kAllocator].text);
        const std::uint64_t bytes = number(kBytes).value_or(0);
        const std::uint64_t address = number(kAddress).value_or(0);
        if (!allocator || bytes == 0 || bytes > INT64_MAX || address == 0 ||
            time_ns > kMostTime_ns) {
            ++unreadable_;
            return;
        }
        ProfileEvent event;
        Allocator& about = allocators_[*allocator];
        ++about.events;
        const std::uint64_t allocated = number(kAllocated).value_or(kUnknown64);
        event.allocated = allocated <= INT64_MAX ? allocated : kUnknown64;
        const std::uint64_t available = number(kAvailable).value_or(0);
        const std::uint64_t reserved = number(kReserved).value_or(0);
        if (available != 0 && std::max({event.allocated, reserved, available}) <= kMostTotal) {
            about.limit_bytes = std::max(about.limit_bytes, event.allocated + reserved + available);
        }
        // A whole number is written as an integer.
        const double fragmentation = stats[kFragmentation].real.value_or(
            static_cast<double>(number(kFragmentation).value_or(2)));
        if (fragmentation >= 0 && fragmentation <= 1) {
            about.fragmentation = std::max(about.fragmentation, fragmentation);
        }
        const std::string& op = stats[kOperator].text;
        if (const auto text = op.empty() ? std::nullopt : profile_.stacks().text_number(op)) {
            event.innermost =
                profile_.stacks().frame_number({.function = profile_.stacks().text(*text),
                                                .file = {},
                                                .first_line = 0,
                                                .native = true},
                                               0);
        }
        EventRecord& record = event.record;
        record.kind = allocation ? EventKind::kBlockAlloc : EventKind::kBlockFree;
        record.flags = kFlagSegmentUnknown;
        record.time_ns = time_ns;
        record.device = static_cast<std::uint16_t>(*allocator);  // until choose_devices()
        record.thread = thread_;
        record.stream = kStreamUnknown;
        record.address = address;
        const std::uint64_t requested = number(kRequested).value_or(kUnknown64);
        record.size = !allocation ? 0 : requested <= bytes ? requested : kUnknown64;
        record.extra = bytes;
        profile_.add(event);
    }

    std::optional<std::uint32_t> allocator_number(const std::string& name) {
        const auto found = allocator_numbers_.find(name);
        if (found != allocator_numbers_.end()) {
            return found->second;
        }
        if (allocators_.size() >= kMostAllocators || name.empty()) {
            return std::nullopt;
        }
        const auto number = static_cast<std::uint32_t>(allocators_.size());
        allocators_.emplace_back().name = printable(name.substr(0, kMostNameBytes));
        allocator_numbers_.emplace(name, number);
        return number;
    }

    // ---- the timeline ---------------------------------------------------------------------------

    // Allocators of GPUs keep the number of their GPU. Those of the host are devices only if there
    // is no other.
    void choose_devices() {
        std::set<std::uint16_t> taken;
        for (Allocator& allocator : allocators_) {
            const auto gpu = gpu_of(allocator.name);
            if (gpu && taken.insert(*gpu).second) {
                allocator.device = gpu;
            }
        }
        of_host_ = taken.empty();
        for (std::size_t i = 0; of_host_ && i < std::min(allocators_.size(), kMostDevices); ++i) {
            allocators_[i].device = static_cast<std::uint16_t>(i);
        }
        std::string others;
        std::uint64_t left_out = 0;
        std::vector<std::uint16_t> devices;
        for (const Allocator& allocator : allocators_) {
            devices.push_back(allocator.device.value_or(kDeviceUnknown));
            if (allocator.device) {
                timeline_.builder().add_fact(fmt::format("device.{}.name", *allocator.device),
                                             allocator.name);
            } else {
                left_out += allocator.events;
                others += (others.empty() ? "" : ", ") + allocator.name;
            }
        }
        profile_.renumber_devices(devices);
        timeline_.warn_left_out(
            left_out, "memory event", fmt::format("of other allocators ({})", others));
    }

    void say_what_is_missing() {
        timeline_.builder().add_fact("options.stack_depth", std::to_string(kUnknown32));
        timeline_.warn_left_out(unreadable_, "memory event", "that cannot be read");
        timeline_.warn_left_out(other_planes_, "plane", "with memory events of other hosts");
        timeline_.warn_left_out(
            profile_.slices_left_out(), "slice", "beyond the limits of this command");
        timeline_.warn_left_out(names_left_out_,
                                "name",
                                "beyond the limits of this command, and with them their events,");
        std::string limits;
        std::string fragmentation;
        for (const Allocator& allocator : allocators_) {
            if (allocator.device && allocator.limit_bytes != 0) {
                limits += fmt::format("{}{} may take {}",
                                      limits.empty() ? "; " : ", ",
                                      allocator.name,
                                      format_bytes(allocator.limit_bytes));
            }
            if (allocator.device && allocator.fragmentation >= 0) {
                fragmentation += fmt::format("{}{} reports at most {:.1f} %",
                                             fragmentation.empty() ? "" : ", ",
                                             allocator.name,
                                             100 * allocator.fragmentation);
            }
        }
        if (of_host_) {
            timeline_.lacks(
                "memory of a GPU. All memory events are of allocators of the host; each is shown "
                "as a device");
        }
        timeline_.lacks_reserved(
            "the regions of the pool and its calls to the driver. So holes, cached memory, waste "
            "and retries of the recorded run are unknown, and no replay can be checked against it");
        if (!fragmentation.empty()) {
            timeline_.lacks(fmt::format(
                "the places of free memory. Only the allocator's own figure of fragmentation is "
                "known, the part of its free memory outside its largest free chunk: {}",
                fragmentation));
        }
        timeline_.lacks("streams. Replays use the default stream");
        timeline_.lacks_failures(
            fmt::format("failed requests, and the free memory of the card{}. Replays need "
                        "--capacity to run out of memory",
                        limits));
        if (!profile_.has_stacks()) {
            timeline_.lacks("operators. So memory is listed by size, not by line");
        }
    }

    const std::string& path_;
    const InputFile& file_;
    ImportTimeline timeline_;
    ProfileEvents profile_{xla_frame};
    Names names_;  // of the plane with memory events
    std::uint64_t names_left_out_ = 0;
    std::size_t memory_plane_ = kNone;
    std::uint64_t other_planes_ = 0;
    std::uint64_t session_start_ns_ = 0;
    std::unordered_map<std::uint64_t, Stat> stat_ids_;
    std::uint32_t line_ = 0;
    std::uint32_t thread_ = 0;
    std::uint64_t line_begin_ns_ = 0;
    std::vector<Allocator> allocators_;
    std::map<std::string, std::uint32_t> allocator_numbers_;
    bool of_host_ = false;
    std::uint64_t unreadable_ = 0;
};

}  // namespace

// An XSpace has no magic bytes: its first plane must begin with a name of the profiler.
bool is_xla_profile(const InputFile& file) {
    ProtoReader reader(file);
    const auto plane = reader.next(ProtoReader::kEndOfFile);
    if (!plane || !plane->is_bytes || plane->number != 1) {
        return false;
    }
    const std::uint64_t end = reader.offset() + plane->value;
    for (int i = 0; i < 2; ++i) {
        const auto field = reader.next(end);
        if (field && field->number == 2 && field->is_bytes) {
            return is_plane_name(reader.text(*field, kMostTextBytes));
        }
        if (!field || field->number != 1 || field->is_bytes) {
            return false;
        }
    }
    return false;
}

Result<Timeline> read_xla_profile(const std::string& path, const InputFile& file) {
    return XlaReader(path, file).read();
}

}  // namespace fragtrace::analyzer
