#include "analyzer/export/perfetto_blocks.h"

#include "analyzer/export/stack_weights.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/symbols.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fragtrace::analyzer {

BlockSlices::BlockSlices(const Analysis& analysis,
                         DeviceId device,
                         PerfettoFile::Track parent,
                         std::vector<OriginTexts>* texts,
                         const std::uint64_t* now,
                         PerfettoFile* file)
    : analysis_(analysis),
      name_(fmt::format("GPU {} blocks", device)),
      parent_(parent),
      texts_(*texts),
      now_(now),
      file_(file) {}

void BlockSlices::block_begins(const RecordedBlock& block) {
    block_ends(block);  // a made-up trace may begin a block twice
    const std::size_t lane = free_lane();
    live_[block.address] = {lane, 0};
    const Timeline& timeline = analysis_.timeline;
    const Event born =
        block.allocated_by < timeline.events.size() ? timeline.events[block.allocated_by] : Event{};
    const OriginTexts& texts = texts_of(born.origin);
    std::vector<PerfettoFile::Argument> arguments = {{"bytes", block.size_bytes}};
    if (block.requested_bytes != kUnknown64) {
        arguments.push_back({"requested_bytes", block.requested_bytes});
    }
    arguments.push_back({"address", PerfettoFile::Address{block.address}});
    if (block.stream < timeline.streams.size()) {
        arguments.push_back({"stream", PerfettoFile::Address{timeline.streams[block.stream]}});
    }
    if (block.private_pool != 0) {
        const std::string number = std::to_string(block.private_pool);
        arguments.push_back({"pool", printable(timeline.fact("pool." + number, number))});
    }
    arguments.push_back({"stack", texts.stack});
    file_->begin(lanes_[lane], *now_, texts.line, {}, arguments);
}

void BlockSlices::block_waits(const RecordedBlock& block) {
    if (const auto found = live_.find(block.address); found != live_.end()) {
        found->second.freed = *now_;
    }
}

void BlockSlices::block_ends(const RecordedBlock& block) {
    if (const auto found = live_.find(block.address); found != live_.end()) {
        end(found->second);
        live_.erase(found);
    }
}

void BlockSlices::all_ends() {
    for (const auto& [address, life] : live_) {
        end(life);
    }
    live_.clear();
}

std::size_t BlockSlices::free_lane() {
    if (free_.empty()) {
        lanes_.push_back(file_->add_track(parent_, name_));
        return lanes_.size() - 1;
    }
    const std::size_t lane = free_.top();
    free_.pop();
    return lane;
}

void BlockSlices::end(const Life& life) {
    std::vector<PerfettoFile::Argument> arguments;
    if (life.freed != 0) {
        arguments.push_back({"waited_for_streams_ns", *now_ - life.freed});
    }
    file_->end(lanes_[life.lane], *now_, arguments);
    free_.push(life.lane);
}

const OriginTexts& BlockSlices::texts_of(OriginId origin) {
    OriginTexts& texts = texts_[origin < texts_.size() ? origin : 0];
    if (texts.line.number == 0) {
        Symbolizer* const symbols = analysis_.symbols.get();
        texts.line = file_->name(printable(symbols->describe(origin)));
        std::vector<std::string> frames = flame_frames(symbols, origin);
        std::reverse(frames.begin(), frames.end());
        texts.stack = file_->add_argument_text(fmt::format("{}", fmt::join(frames, "\n")));
    }
    return texts;
}

}  // namespace fragtrace::analyzer
