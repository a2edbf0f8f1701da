#include "analyzer/snapshot/snapshot_timeline.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"
#include "analyzer/snapshot/snapshot_assumptions.h"
#include "analyzer/snapshot/snapshot_history.h"
#include "analyzer/snapshot/snapshot_host.h"
#include "analyzer/snapshot/snapshot_start.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/block_labels.h"
#include "analyzer/trace/builder.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Escapes characters that separate facts, because facts are lines of text.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char character : text) {
        result += character == '\\'   ? std::string("\\\\")
                  : character == '\t' ? std::string("\\t")
                  : character == '\n' ? std::string("\\n")
                                      : std::string(1, character);
    }
    return result;
}

class Maker {
  public:
    Maker(Snapshot snapshot, const std::string& path, const std::string& torch_version)
        : snapshot_(std::move(snapshot)),
          path_(path),
          release_(!torch_version.empty()      ? torch_version
                   : snapshot_.release.empty() ? snapshot_.oldest_release
                                               : snapshot_.release),
          rules_(PytorchRules::for_release(release_)),
          builder_(0) {
        const auto parsed = parse_pytorch_config(snapshot_.settings, rules_);
        config_ = parsed ? *parsed : PytorchConfig{};
    }

    Timeline run() {
        drop_histories_without_requests();
        std::uint32_t devices = static_cast<std::uint32_t>(snapshot_.histories.size());
        for (const SnapshotSegment& segment : snapshot_.segments) {
            devices = std::max(devices, segment.device + 1);
        }
        for (std::uint32_t device = 0; device < devices; ++device) {
            starts_.push_back(undo_history(&snapshot_, device, config_, rules_));
        }
        host_ = host_events(snapshot_);
        first_us_ = first_time();
        for (const auto& [first, count] : snapshot_.histories) {
            entries_ += static_cast<std::uint64_t>(
                std::count_if(snapshot_.entries.begin() + first,
                              snapshot_.entries.begin() + first + count,
                              [](const SnapshotEntry& entry) {
                                  return entry.action < SnapshotAction::kSnapshot;
                              }));
        }
        builder_.add_nodes(
            1,
            {snapshot_.nodes.begin() + std::min<std::ptrdiff_t>(1, std::ssize(snapshot_.nodes)),
             snapshot_.nodes.end()});
        emitter_ = [this](const EventRecord& event, std::uint32_t label) { emit(event, label); };
        for (std::uint32_t device = 0; device < devices; ++device) {
            histories_.emplace_back(&snapshot_, &starts_[device], device, &config_, emitter_);
        }
        checkpoint();
        play();
        return finish();
    }

  private:
    // If enabled="state", PyTorch keeps the last entry of a device, whatever its kind. An entry
    // without a request adds nothing to the state.
    void drop_histories_without_requests() {
        for (auto& [first, count] : snapshot_.histories) {
            const auto begin = snapshot_.entries.begin() + first;
            if (std::none_of(begin, begin + count, [](const SnapshotEntry& entry) {
                    return entry.action == SnapshotAction::kAlloc ||
                           entry.action == SnapshotAction::kOutOfMemory ||
                           entry.action == SnapshotAction::kAnnotate;
                })) {
                count = 0;
            }
        }
    }

    void emit(EventRecord event, std::uint32_t label = 0) {
        event.sequence = ++sequence_;
        builder_.add_event(event);
        if (label != 0) {
            labels_.emplace_back(static_cast<EventIndex>(sequence_ - 1),
                                 text_number(snapshot_.labels[label]));
        }
        if (event.kind == EventKind::kDeviceAlloc || event.kind == EventKind::kMap) {
            segment_streams_.emplace_back(static_cast<EventIndex>(sequence_ - 1), event.stream);
        }
    }

    [[nodiscard]] std::uint64_t first_time() const {
        std::uint64_t first = ~std::uint64_t{0};
        for (const auto& [begin, count] : snapshot_.histories) {
            if (count != 0) {
                first = std::min(first, snapshot_.entries[begin].time_us);
            }
        }
        if (!host_.events.empty()) {
            first = std::min(first, host_.events.front().time_ns);
        }
        return first == ~std::uint64_t{0} ? 0 : first;
    }

    [[nodiscard]] std::uint64_t time_ns(std::uint64_t time_us) const {
        return time_us > first_us_ ? (time_us - first_us_) * 1000 : 0;
    }

    void checkpoint() {
        if (host_.start.empty() &&
            std::all_of(starts_.begin(), starts_.end(), [](const SnapshotStart& start) {
                return start.segments.empty();
            })) {
            return;  // the history begins before the first segment
        }
        EventRecord event = {};
        event.device = kDeviceUnknown;
        event.kind = EventKind::kCheckpointBegin;
        emit(event);
        for (SnapshotHistory& history : histories_) {
            history.tell_start();
        }
        for (const EventRecord& held : host_.start) {
            emit(held);
        }
        event.kind = EventKind::kCheckpointEnd;
        emit(event);
    }

    // Merges the histories of all devices and of pinned memory in the order of time.
    void play() {
        std::size_t next_annotation = 0;
        std::size_t next_host = 0;
        const auto tell_host_to = [&](std::uint64_t time_us) {
            for (; next_host < host_.events.size() && host_.events[next_host].time_ns <= time_us;
                 ++next_host) {
                EventRecord event = host_.events[next_host];
                event.time_ns = snapshot_.times_known ? time_ns(event.time_ns) : 0;
                emit(event);
            }
        };
        std::uint64_t counted_ns = 0;
        for (;;) {
            SnapshotHistory* earliest = nullptr;
            for (SnapshotHistory& history : histories_) {
                if (!history.at_end() &&
                    (earliest == nullptr || history.next_time_us() < earliest->next_time_us())) {
                    earliest = &history;
                }
            }
            if (earliest == nullptr) {
                break;
            }
            const std::uint64_t time_us = earliest->next_time_us();
            while (snapshot_.times_known && next_annotation < snapshot_.annotations.size() &&
                   snapshot_.annotations[next_annotation].time_us <= time_us) {
                annotate(snapshot_.annotations[next_annotation++]);
            }
            tell_host_to(time_us);
            // Without times, each entry counts as one microsecond.
            earliest->tell_next(snapshot_.times_known ? time_ns(time_us) : counted_ns += 1000);
        }
        while (snapshot_.times_known && next_annotation < snapshot_.annotations.size()) {
            annotate(snapshot_.annotations[next_annotation++]);
        }
        tell_host_to(~std::uint64_t{0});
    }

    // Returns the number N of the fact "text.N" for a text.
    std::uint32_t text_number(const std::string& text) {
        const auto [found, is_new] =
            texts_.try_emplace(text, static_cast<std::uint32_t>(texts_.size() + 1));
        if (is_new) {
            builder_.add_facts(fmt::format("text.{}\t{}\n", found->second, escaped(text)));
        }
        return found->second;
    }

    void annotate(const SnapshotAnnotation& annotation) {
        EventRecord event = {};
        event.device = kDeviceUnknown;
        event.kind = annotation.begin ? EventKind::kRangeBegin : EventKind::kRangeEnd;
        event.size = text_number(annotation.name);
        event.time_ns = time_ns(annotation.time_us);
        emit(event);
    }

    void add_facts() {
        builder_.add_facts(
            fmt::format("source\tpytorch snapshot\n"
                        "options.stack_depth\t{}\n"
                        "snapshot.entries\t{}\n"
                        "snapshot.ends_in_oom\t{}\n",
                        kUnknown32,  // no limit
                        entries_,
                        ends_in_oom() ? 1 : 0));
        if (has_pool(snapshot_)) {
            builder_.add_facts(
                fmt::format("torch_version\t{}{}\n"
                            "allocator_backend\tnative\n",
                            escaped(release_),
                            is_oldest_release(snapshot_, release_) ? " or later" : ""));
        }
        if (snapshot_.settings_known || !snapshot_.settings.empty()) {
            builder_.add_facts(fmt::format("allocator_conf\t{}\n", escaped(snapshot_.settings)));
        }
        for (std::size_t pool = 1; pool < snapshot_.pools.size(); ++pool) {
            builder_.add_facts(fmt::format("pool.{}\tpytorch {},{}\n",
                                           pool,
                                           snapshot_.pools[pool].first,
                                           snapshot_.pools[pool].second));
        }
        unsigned number = 0;
        for (const std::string& line : snapshot_assumptions(
                 {snapshot_, release_, config_, rules_, starts_, histories_, entries_})) {
            builder_.add_facts(
                fmt::format("snapshot.assumed.{:02}\t{}\n", ++number, escaped(line)));
        }
    }

    // Whether the last entry of a device is an OOM. The entry of the snapshot itself does not
    // count.
    [[nodiscard]] bool ends_in_oom() const {
        return std::any_of(
            snapshot_.histories.begin(), snapshot_.histories.end(), [this](const auto& range) {
                for (std::uint32_t i = range.first + range.second; i-- > range.first;) {
                    const SnapshotAction action = snapshot_.entries[i].action;
                    if (action < SnapshotAction::kSnapshot) {
                        return action == SnapshotAction::kOutOfMemory;
                    }
                }
                return false;
            });
    }

    // Adds the program's labels of blocks to the origins of their allocations.
    void add_labels(Timeline* timeline) const {
        BlockLabeler labeler(timeline);
        for (const auto& [index, text] : labels_) {
            labeler.label(index, text);
        }
    }

    Timeline finish() {
        add_facts();
        snapshot_.entries = {};
        Timeline timeline = builder_.finish();
        timeline.codes = std::move(snapshot_.codes);
        timeline.path = path_;
        timeline.start_unix_ns = first_us_ * 1000;
        timeline.ending = Ending::kContinued;
        // A free segment belongs to a stream, too, but no block in it shows the stream.
        std::map<std::uint64_t, StreamId> streams;
        for (const std::uint64_t raw : timeline.streams) {
            streams.try_emplace(raw, static_cast<StreamId>(streams.size()));
        }
        for (const auto& [index, raw] : segment_streams_) {
            auto stream = streams.find(raw);
            if (stream == streams.end() && streams.size() < kNoStream) {
                stream = streams.emplace(raw, static_cast<StreamId>(streams.size())).first;
                timeline.streams.push_back(raw);
            }
            Event event = timeline.events[index];
            event.stream = stream != streams.end() ? stream->second : kNoStream;
            timeline.events.set(index, event);
        }
        add_labels(&timeline);
        add_notes(&timeline);
        return timeline;
    }

    void add_notes(Timeline* timeline) const {
        std::vector<std::string>& notes = timeline->damage.notes;
        const std::vector<std::string> left_out = left_out_lines(snapshot_);
        notes.insert(notes.end(), left_out.begin(), left_out.end());
        if (snapshot_.entries.empty() && sequence_ == 0) {
            notes.emplace_back("the snapshot is empty: no segment and no history");
        }
        for (std::size_t device = 0; device < starts_.size(); ++device) {
            const SnapshotStart& start = starts_[device];
            if (start.contradictions != 0) {
                notes.push_back(fmt::format("the history and the state at the end disagree {}: {}",
                                            format_counted(start.contradictions, "time", "times"),
                                            start.last_contradiction));
            }
        }
    }

    Snapshot snapshot_;
    const std::string& path_;
    std::string release_;
    PytorchRules rules_;
    PytorchConfig config_;
    TimelineBuilder builder_;
    std::vector<SnapshotStart> starts_;
    std::deque<SnapshotHistory> histories_;
    SnapshotHost host_;
    std::vector<std::pair<EventIndex, std::uint32_t>> labels_;  // by allocation: fact "text.N"
    SnapshotHistory::Emit emitter_;
    std::map<std::string, std::uint32_t> texts_;
    std::vector<std::pair<EventIndex, std::uint64_t>> segment_streams_;
    std::uint64_t first_us_ = 0;
    std::uint64_t entries_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace

Timeline make_timeline(Snapshot snapshot,
                       const std::string& path,
                       const std::string& torch_version) {
    return Maker(std::move(snapshot), path, torch_version).run();
}

}  // namespace fragtrace::analyzer
