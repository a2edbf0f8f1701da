#include "analyzer/imports/profile_events.h"

#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostSlices = std::size_t{8} << 20;
constexpr std::uint64_t kStandInBytes = std::uint64_t{1} << 30;

}  // namespace

void ProfileEvents::add(const ProfileSlice& slice, std::string_view name) {
    const auto number = stacks_.text_number(name);
    if (!number || slices_.size() >= kMostSlices) {
        ++slices_left_out_;
        return;
    }
    slices_.push_back({slice, *number});
}

void ProfileEvents::renumber_devices(const std::vector<std::uint16_t>& devices) {
    for (ProfileEvent& event : events_) {
        event.record.device = devices.at(event.record.device);
    }
    std::erase_if(events_,
                  [](const ProfileEvent& event) { return event.record.device == kDeviceUnknown; });
}

std::uint64_t ProfileEvents::write(ImportTimeline* timeline) {
    timeline_ = timeline;
    sort();
    find_starts();
    write_starts();
    write_events();
    if (!stacks_.empty()) {
        timeline_->builder().add_nodes(1, stacks_.nodes());
    }
    return first_ns_;
}

void ProfileEvents::sort() {
    std::stable_sort(
        events_.begin(), events_.end(), [](const ProfileEvent& a, const ProfileEvent& b) {
            return a.record.time_ns < b.record.time_ns;
        });
    std::stable_sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    first_ns_ = events_.front().record.time_ns;
    if (!slices_.empty()) {
        first_ns_ = std::min(first_ns_, slices_.front().begin_ns);
    }
}

// ---- memory that is older than the profile ------------------------------------------------------

void ProfileEvents::find_starts() {
    std::map<std::pair<std::uint16_t, std::uint64_t>, bool> live;
    for (const ProfileEvent& event : events_) {
        const EventRecord& record = event.record;
        if (event.allocated == kUnknown64) {
            continue;
        }
        const auto [start, is_first] = starts_.try_emplace(record.device);
        Start& device = start->second;
        if (is_first) {
            const std::uint64_t added = record.kind == EventKind::kBlockAlloc ? record.extra : 0;
            const std::uint64_t freed = record.kind == EventKind::kBlockFree ? record.extra : 0;
            device.older_bytes =
                event.allocated + freed > added ? event.allocated + freed - added : 0;
        }
        if (record.kind == EventKind::kBlockOutOfMemory) {
            continue;
        }
        device.highest_end = std::max(device.highest_end, record.address + record.extra);
        bool& is_live = live[{record.device, record.address}];
        if (record.kind == EventKind::kBlockFree && !is_live) {
            device.older_blocks.emplace_back(record.address, record.extra);
        }
        is_live = record.kind == EventKind::kBlockAlloc;
    }
}

// Blocks that the profile frees are known. The rest of the older memory becomes one block.
void ProfileEvents::write_starts() {
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
            timeline_->lacks(fmt::format(
                "the allocations of {} on device {}, which is older than the profile. It is "
                "shown as allocated at the begin; {} of it, which the profile never frees, is "
                "shown as one block",
                format_bytes(device.older_bytes),
                id,
                format_bytes(rest)));
        }
    }
}

void ProfileEvents::write_older(std::uint16_t device, std::uint64_t address, std::uint64_t bytes) {
    EventRecord event = {};
    event.kind = EventKind::kBlockAlloc;
    event.flags = kFlagSegmentUnknown;
    event.device = device;
    event.stream = kStreamUnknown;
    event.address = address;
    event.size = kUnknown64;
    event.extra = bytes;
    timeline_->add(event);
}

// ---- events, ranges and stacks ------------------------------------------------------------------

void ProfileEvents::write_events() {
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
    for (const ProfileEvent& event : events_) {
        EventRecord record = event.record;
        write_ranges_to(record.time_ns);
        open_slices_to(record.time_ns);
        if (record.python_stack == 0) {
            record.python_stack = stack_of(record.thread, record.time_ns);
        }
        if (event.innermost != kNoFrame) {
            record.python_stack = stacks_.stack(record.python_stack, event.innermost);
        }
        record.time_ns -= first_ns_;
        timeline_->add(record);
    }
    write_ranges_to(~std::uint64_t{0});
}

void ProfileEvents::write_range(std::uint32_t slice, std::uint64_t time_ns, bool begin) {
    EventRecord event = {};
    event.kind = begin ? EventKind::kRangeBegin : EventKind::kRangeEnd;
    event.device = kDeviceUnknown;
    event.time_ns = time_ns - first_ns_;
    event.thread = slices_[slice].thread;
    event.address = slice + 1;
    event.size = timeline_->text_number(stacks_.text(slices_[slice].name));
    timeline_->add(event);
}

// Slices of a thread are nested. Those that ended leave the stack when a later one begins.
void ProfileEvents::open_slices_to(std::uint64_t time_ns) {
    for (; next_slice_ < slices_.size() && slices_[next_slice_].begin_ns <= time_ns;
         ++next_slice_) {
        const Slice& slice = slices_[next_slice_];
        std::vector<Open>& open = open_[slice.thread];
        while (!open.empty() && open.back().end_ns <= slice.begin_ns) {
            open.pop_back();
        }
        const std::uint32_t caller = open.empty() ? 0 : open.back().stack;
        open.push_back(
            {slice.end_ns, slice.range ? caller : stacks_.stack(caller, frame_of(slice.name))});
    }
}

std::uint32_t ProfileEvents::stack_of(std::uint32_t thread, std::uint64_t time_ns) {
    const auto found = open_.find(thread);
    if (found == open_.end()) {
        return 0;
    }
    std::vector<Open>& open = found->second;
    while (!open.empty() && open.back().end_ns <= time_ns) {
        open.pop_back();
    }
    return open.empty() ? 0 : open.back().stack;
}

std::uint32_t ProfileEvents::frame_of(std::uint32_t name) {
    const auto [found, is_new] = frames_.try_emplace(name);
    if (is_new) {
        std::uint32_t line = 0;
        const PythonCode code = frame_of_name_(stacks_.text(name), &line);
        found->second = stacks_.frame_number(code, line);
    }
    return found->second;
}

}  // namespace fragtrace::analyzer
