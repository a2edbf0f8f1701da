// The last part of SnapshotRows: the dict of the whole snapshot, when all other dicts are rows.
#include "analyzer/snapshot/snapshot_rows.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

}  // namespace

bool SnapshotRows::finish(PickleReader& reader, const PickleValue& value) {
    if (value.kind == Kind::kRow && value.row_kind == kSnapshotRow) {
        finish_columns();
        return true;
    }
    if (value.kind == Kind::kList) {
        dict_.open(&reader, kSegments, value);
        whole();
        finish_columns();
        return reader.failure().empty();
    }
    reader.fail("the pickle holds something else than a snapshot");
    return false;
}

PickleValue SnapshotRows::whole() {
    if (found_) {
        return fail("a second snapshot");
    }
    found_ = true;
    dict_.note_keys();
    if (dict_.has(kTorchVersion, Kind::kText)) {
        release_ = reader().texts().view(dict_[kTorchVersion].index);
    }
    if (dict_.has(kWithoutPool, Kind::kList)) {
        for (const PickleValue& device : reader().list(dict_[kWithoutPool])) {
            if (device.is_count() && device.number < kDevicesKept) {
                snapshot_.without_pool.insert(static_cast<std::uint32_t>(device.number));
            }
        }
    }
    if (has(kSegments) && !take_segments(kSegments, &snapshot_.segments)) {
        return {};
    }
    if (has(kHostSegments) && !take_segments(kHostSegments, &snapshot_.host_segments)) {
        return {};
    }
    std::erase_if(snapshot_.segments,
                  [](const SnapshotSegment& segment) { return segment.device >= kDevicesKept; });
    if (has(kDeviceTraces)) {
        if (dict_[kDeviceTraces].kind != Kind::kList) {
            return fail("'device_traces' is not a list");
        }
        for (const PickleValue& one : reader().list(dict_[kDeviceTraces])) {
            std::pair<std::uint32_t, std::uint32_t> range;
            if (!history(kDeviceTraces, one, &range)) {
                return {};
            }
            if (snapshot_.histories.size() < kDevicesKept) {
                snapshot_.histories.push_back(range);
            }
        }
    }
    if (has(kHostTraces) && !history(kHostTraces, dict_[kHostTraces], &snapshot_.host_history)) {
        return {};
    }
    return PickleValue::row(kSnapshotRow, 0);
}

bool SnapshotRows::take_segments(Word key, std::vector<SnapshotSegment>* segments) {
    if (dict_[key].kind != Kind::kList) {
        fail(fmt::format("'{}' is not a list", kWords[key]));
        return false;
    }
    for (const PickleValue& one : reader().list(dict_[key])) {
        if (one.kind != Kind::kRow || one.row_kind != kSegmentRow) {
            fail(fmt::format("'{}' is not a list of segments", kWords[key]));
            return false;
        }
        segments->push_back(segments_[one.index]);
    }
    return true;
}

bool SnapshotRows::history(Word key,
                           const PickleValue& list,
                           std::pair<std::uint32_t, std::uint32_t>* range) {
    if (list.kind != Kind::kList) {
        fail(fmt::format("'{}' holds something else than lists of entries", kWords[key]));
        return false;
    }
    const auto entries = reader().list(list);
    const std::uint32_t first = entries.empty() ? 0 : entries.front().index;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].kind != Kind::kRow || entries[i].row_kind != kEntryRow ||
            entries[i].index != first + i) {
            fail(fmt::format("'{}' holds something else than entries of its own", kWords[key]));
            return false;
        }
    }
    *range = {first, static_cast<std::uint32_t>(entries.size())};
    return true;
}

void SnapshotRows::finish_columns() {
    snapshot_.nodes = stacks_.take_nodes();
    snapshot_.codes = stacks_.take_codes();
    snapshot_.times_known = times_known_ && !snapshot_.entries.empty();
    snapshot_.settings_known = settings_.has_value();
    if (settings_) {
        snapshot_.settings = settings_text(*settings_);
    } else if (std::any_of(snapshot_.segments.begin(),
                           snapshot_.segments.end(),
                           [](const SnapshotSegment& segment) { return segment.expandable; })) {
        // In 2.1 only the segments show that expandable segments are on.
        SnapshotSettings concluded;
        concluded.expandable_segments = true;
        snapshot_.settings = settings_text(concluded);
    }
    snapshot_.oldest_release = dict_.oldest_release();
    if (const std::string_view end = " or later"; release_.ends_with(end)) {
        snapshot_.oldest_release = release_.substr(0, release_.size() - end.size());
    } else {
        snapshot_.release = release_;
    }
    snapshot_.unknown_actions = by_name(unknown_actions_);
    snapshot_.unknown_keys = by_name(dict_.unknown_keys());
}

std::map<std::string, std::uint64_t> SnapshotRows::by_name(
    const std::map<std::uint32_t, std::uint64_t>& counts) {
    std::map<std::string, std::uint64_t> named;
    for (const auto& [text, count] : counts) {
        named[std::string(reader().texts().view(text))] = count;
    }
    return named;
}

}  // namespace fragtrace::analyzer
