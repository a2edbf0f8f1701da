// Chunks of a trace, found, decompressed and decoded ahead on a second thread; in the file's order.
//
// Both threads decode: the second one when it is ahead, the caller's when it would have to wait.
// Give out and ended by one thread only.
#pragma once

#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/event_decoder.h"
#include "analyzer/trace/event_piece.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fragtrace::analyzer {

// What the events of a chunk become: EventPiece, or EventRecords.
template <typename Events>
class ChunkPipeline {
  public:
    struct Item {
        Chunk chunk;
        Events events;         // kEvents: its events
        bool decoded = false;  // kEvents: false = the payload is damaged

      private:
        friend class ChunkPipeline;
        enum class State { kFree, kRaw, kTaken, kReady };
        State state = State::kFree;
        std::vector<std::uint8_t> payload;
        std::uint64_t first_event = 0;  // events that chunks before it announce
    };

    // The scanner belongs to the pipeline until that is destroyed.
    explicit ChunkPipeline(ChunkScanner* scanner);
    ~ChunkPipeline();
    ChunkPipeline(const ChunkPipeline&) = delete;
    ChunkPipeline& operator=(const ChunkPipeline&) = delete;

    // Valid until the next call; nullptr at the end of the file. Throws what the second thread met.
    const Item* next();

  private:
    using Lock = std::unique_lock<std::mutex>;

    void run();
    void fill();
    bool decode_oldest(Lock* lock);

    static void decode(Item* item) {
        item->decoded = item->events.decode(item->chunk, item->first_event);
    }

    static constexpr std::size_t kItems = 6;

    ChunkScanner* scanner_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::array<Item, kItems> items_;
    std::size_t filled_ = 0;  // items so far; the next is items_[filled_ % kItems]
    std::size_t given_ = 0;
    std::uint64_t events_ = 0;  // announced so far
    bool ended_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

extern template class ChunkPipeline<EventPiece>;
extern template class ChunkPipeline<EventRecords>;

}  // namespace fragtrace::analyzer
