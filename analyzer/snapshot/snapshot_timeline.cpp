#include "analyzer/snapshot/snapshot_timeline.h"

#include "analyzer/pools/pytorch_sizes.h"
#include "analyzer/snapshot/snapshot_history.h"
#include "analyzer/snapshot/snapshot_start.h"
#include "analyzer/trace/builder.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Facts are lines of text.
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
          release_(torch_version.empty() ? snapshot_.oldest_release : torch_version),
          rules_(PytorchRules::for_release(release_)),
          builder_(0) {
        const auto parsed = parse_pytorch_config(snapshot_.settings, rules_);
        config_ = parsed ? *parsed : PytorchConfig{};
    }

    Timeline run() {
        std::uint32_t devices = static_cast<std::uint32_t>(snapshot_.histories.size());
        for (const SnapshotSegment& segment : snapshot_.segments) {
            devices = std::max(devices, segment.device + 1);
        }
        for (std::uint32_t device = 0; device < devices; ++device) {
            starts_.push_back(undo_history(&snapshot_, device, config_, rules_));
        }
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
        emitter_ = [this](const EventRecord& event) { emit(event); };
        for (std::uint32_t device = 0; device < devices; ++device) {
            histories_.emplace_back(&snapshot_, &starts_[device], device, &config_, emitter_);
        }
        checkpoint();
        play();
        return finish();
    }

  private:
    void emit(EventRecord event) {
        event.sequence = ++sequence_;
        builder_.add_event(event);
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
        return first == ~std::uint64_t{0} ? 0 : first;
    }

    [[nodiscard]] std::uint64_t time_ns(std::uint64_t time_us) const {
        return time_us > first_us_ ? (time_us - first_us_) * 1000 : 0;
    }

    void checkpoint() {
        if (std::all_of(starts_.begin(), starts_.end(), [](const SnapshotStart& start) {
                return start.segments.empty();
            })) {
            return;  // from the first segment on
        }
        EventRecord event = {};
        event.device = kDeviceUnknown;
        event.kind = EventKind::kCheckpointBegin;
        emit(event);
        for (SnapshotHistory& history : histories_) {
            history.tell_start();
        }
        event.kind = EventKind::kCheckpointEnd;
        emit(event);
    }

    // Histories of several devices, in the order of their times.
    void play() {
        std::size_t next_annotation = 0;
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
            // Without times an entry is a microsecond.
            earliest->tell_next(snapshot_.times_known ? time_ns(time_us) : counted_ns += 1000);
        }
        while (snapshot_.times_known && next_annotation < snapshot_.annotations.size()) {
            annotate(snapshot_.annotations[next_annotation++]);
        }
    }

    void annotate(const SnapshotAnnotation& annotation) {
        const auto [text, is_new] =
            texts_.try_emplace(annotation.name, static_cast<std::uint32_t>(texts_.size() + 1));
        if (is_new) {
            builder_.add_facts(fmt::format("text.{}\t{}\n", text->second, escaped(text->first)));
        }
        EventRecord event = {};
        event.device = kDeviceUnknown;
        event.kind = annotation.begin ? EventKind::kRangeBegin : EventKind::kRangeEnd;
        event.size = text->second;
        event.time_ns = time_ns(annotation.time_us);
        emit(event);
    }

    void add_facts() {
        builder_.add_facts(
            fmt::format("source\tpytorch snapshot\n"
                        "torch_version\t{}{}\n"
                        "allocator_backend\tnative\n"
                        "allocator_conf\t{}\n"
                        "options.stack_depth\t{}\n"
                        "snapshot.entries\t{}\n",
                        release_,
                        release_ == snapshot_.oldest_release ? " or later" : "",
                        escaped(snapshot_.settings),
                        kUnknown32,  // no limit
                        entries_));
        for (std::size_t pool = 1; pool < snapshot_.pools.size(); ++pool) {
            builder_.add_facts(fmt::format("pool.{}\tpytorch {},{}\n",
                                           pool,
                                           snapshot_.pools[pool].first,
                                           snapshot_.pools[pool].second));
        }
        add_assumptions();
    }

    void assume(const std::string& what) {
        builder_.add_facts(fmt::format("snapshot.assumed.{:02}\t{}\n", ++assumed_, what));
    }

    // What a snapshot does not tell, and what is taken instead.
    void add_assumptions() {
        if (release_ == snapshot_.oldest_release) {
            assume(
                fmt::format("the snapshot does not name its release: the rules of PyTorch {} are "
                            "taken, the oldest that writes its keys; --torch-version names "
                            "another",
                            release_));
        }
        if (!snapshot_.settings_known) {
            assume(fmt::format("the snapshot does not tell the allocator's settings: {} taken",
                               snapshot_.settings.empty()
                                   ? "the defaults are"
                                   : snapshot_.settings + ", as its segments are, is"));
        }
        if (config_.garbage_collection_threshold > 0) {
            assume(
                "garbage collection depends on a memory fraction, which a snapshot does not "
                "tell: none is replayed");
        }
        const bool midlife = std::any_of(starts_.begin(), starts_.end(), [](const auto& start) {
            return !start.segments.empty();
        });
        if (midlife && entries_ != 0 && rules_.tie_break == PytorchRules::TieBreak::kRegistration) {
            assume(
                "in which order the segments at the start were obtained is not told: that of "
                "their addresses is taken");
        }
        std::uint64_t pending = 0;
        std::uint64_t releases = 0;
        bool expandable = false;
        for (const SnapshotHistory& history : histories_) {
            pending += history.pending_frees();
            releases += history.unexplained_releases();
            expandable = expandable || history.has_expandable();
        }
        if (pending != 0) {
            assume(
                fmt::format("{} frees waited for other streams, it is not told which: each "
                            "completes when it was seen complete",
                            pending));
        }
        if (releases != 0) {
            assume(
                fmt::format("{} times segments went back without a stack that tells why: taken "
                            "for calls of empty_cache",
                            releases));
        }
        if (expandable) {
            assume(
                "where the address ranges of expandable segments begin and end is not told: "
                "each begins where it was first mapped");
        }
        if (std::any_of(starts_.begin(), starts_.end(), [](const SnapshotStart& start) {
                return start.without_requests != start.without_completions;
            })) {
            assume(
                "the history leaves the requests or the completions of frees out: each free "
                "completes at once");
        }
        if (!snapshot_.times_known && entries_ != 0) {
            assume("the entries have no times: each is shown as a microsecond");
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
        // Free segments belong to a stream as well, which no block in them tells.
        for (const auto& [index, raw] : segment_streams_) {
            const auto stream = std::find(timeline.streams.begin(), timeline.streams.end(), raw);
            Event event = timeline.events[index];
            event.stream = static_cast<StreamId>(stream - timeline.streams.begin());
            timeline.events.set(index, event);
            if (stream == timeline.streams.end()) {
                timeline.streams.push_back(raw);
            }
        }
        add_notes(&timeline);
        return timeline;
    }

    void add_notes(Timeline* timeline) const {
        std::vector<std::string>& notes = timeline->damage.notes;
        if (snapshot_.entries.empty() && sequence_ == 0) {
            notes.emplace_back("the snapshot holds nothing: no segment and no history");
        }
        for (std::size_t device = 0; device < starts_.size(); ++device) {
            const SnapshotStart& start = starts_[device];
            if (start.contradictions != 0) {
                notes.push_back(
                    fmt::format("the history and the state at the end disagree {} times: {}",
                                start.contradictions,
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
    SnapshotHistory::Emit emitter_;
    std::map<std::string, std::uint32_t> texts_;
    std::vector<std::pair<EventIndex, std::uint64_t>> segment_streams_;
    std::uint64_t first_us_ = 0;
    std::uint64_t entries_ = 0;
    unsigned assumed_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace

Timeline make_timeline(Snapshot snapshot,
                       const std::string& path,
                       const std::string& torch_version) {
    return Maker(std::move(snapshot), path, torch_version).run();
}

}  // namespace fragtrace::analyzer
