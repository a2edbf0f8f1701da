#include "analyzer/trace/recording_spans.h"

namespace fragtrace::analyzer {
namespace {

class Spans {
  public:
    explicit Spans(Timeline* timeline) : timeline_(*timeline) {}

    void run(const std::vector<EventIndex>& remarks) {
        for (const EventIndex i : remarks) {
            visit(timeline_.events.kind(i), i);
        }
        const auto count = static_cast<EventIndex>(timeline_.events.size());
        if (stopped_) {
            timeline_.gaps.back().end = count;
        }
        if (checkpoint_) {
            timeline_.checkpoints.back().end = count;
            timeline_.damage.notes.emplace_back(
                "the trace ends within the list of allocations that were live at its begin");
        }
    }

  private:
    void visit(EventKind kind, EventIndex i) {
        switch (kind) {
            case EventKind::kRecordingStopped:
                if (!stopped_) {
                    timeline_.gaps.push_back({i, i});
                    stopped_ = true;
                }
                break;
            case EventKind::kRecordingStarted:
                if (stopped_) {
                    timeline_.gaps.back().end = i;
                } else {
                    timeline_.gaps.push_back({0, i});  // recording was off when the process began
                }
                stopped_ = false;
                break;
            case EventKind::kCheckpointBegin:
                if (!checkpoint_) {
                    timeline_.checkpoints.push_back({i, i});
                    checkpoint_ = true;
                }
                break;
            case EventKind::kCheckpointEnd:
                if (checkpoint_) {
                    timeline_.checkpoints.back().end = i;
                    checkpoint_ = false;
                }
                break;
            default:
                break;
        }
    }

    Timeline& timeline_;
    bool stopped_ = false;
    bool checkpoint_ = false;
};

}  // namespace

void find_recording_spans(Timeline* timeline, const std::vector<EventIndex>& remarks) {
    Spans(timeline).run(remarks);
}

}  // namespace fragtrace::analyzer
