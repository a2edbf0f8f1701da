// Finds, decompresses and decodes the chunks of a trace on a second thread, ahead of the reader.
// Chunks are returned in the file's order.
//
// Both threads decode: the second one while it is ahead, the caller's when it would otherwise wait.
// Only one thread may call next() and destroy the pipeline.
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

// `Events` is the decoded form of a chunk's events: EventPiece or EventRecords.
template <typename Events>
class ChunkPipeline {
  public:
    struct Item {
        Chunk chunk;
        Events events;         // kEvents chunks: the decoded events
        bool decoded = false;  // kEvents chunks: false = damaged payload

      private:
        friend class ChunkPipeline;
        enum class State { kFree, kRaw, kTaken, kReady };
        State state = State::kFree;
        std::vector<std::uint8_t> payload;
        std::uint64_t first_event = 0;  // number of events in earlier chunks
    };

    // The pipeline uses the scanner exclusively until it is destroyed.
    explicit ChunkPipeline(ChunkScanner* scanner);
    ~ChunkPipeline();
    ChunkPipeline(const ChunkPipeline&) = delete;
    ChunkPipeline& operator=(const ChunkPipeline&) = delete;

    // The next chunk; nullptr at the end of the file. Valid until the next call. Rethrows an
    // exception of the second thread.
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
    std::size_t filled_ = 0;  // so far; the next one is items_[filled_ % kItems]
    std::size_t given_ = 0;
    std::uint64_t events_ = 0;  // events announced so far
    bool ended_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

template <typename Events>
ChunkPipeline<Events>::ChunkPipeline(ChunkScanner* scanner) : scanner_(scanner) {
    thread_ = std::thread([this] { run(); });
}

template <typename Events>
ChunkPipeline<Events>::~ChunkPipeline() {
    {
        const Lock lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

template <typename Events>
void ChunkPipeline<Events>::run() {
    try {
        fill();
    } catch (...) {
        const Lock lock(mutex_);
        failure_ = std::current_exception();
    }
    const Lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
}

template <typename Events>
void ChunkPipeline<Events>::fill() {
    Lock lock(mutex_);
    while (!stop_) {
        Item& item = items_[filled_ % kItems];
        if (item.state != Item::State::kFree) {
            if (!decode_oldest(&lock)) {
                changed_.wait(lock);
            }
            continue;
        }
        lock.unlock();
        if (!scanner_->next(&item.chunk)) {
            return;
        }
        scanner_->keep_payload(&item.payload);
        const bool events = item.chunk.header.type == ChunkType::kEvents;
        item.first_event = events_;
        events_ += events ? item.chunk.header.count : 0;
        lock.lock();
        item.state = events ? Item::State::kRaw : Item::State::kReady;
        ++filled_;
        changed_.notify_all();
    }
}

// Decodes the item that is needed first. Returns false if no item waits for decoding.
template <typename Events>
bool ChunkPipeline<Events>::decode_oldest(Lock* lock) {
    for (std::size_t at = given_; at < filled_; ++at) {
        Item& item = items_[at % kItems];
        if (item.state == Item::State::kRaw) {
            item.state = Item::State::kTaken;
            lock->unlock();
            decode(&item);
            lock->lock();
            item.state = Item::State::kReady;
            changed_.notify_all();
            return true;
        }
    }
    return false;
}

template <typename Events>
auto ChunkPipeline<Events>::next() -> const Item* {
    Lock lock(mutex_);
    if (given_ != 0) {
        items_[(given_ - 1) % kItems].state = Item::State::kFree;
        changed_.notify_all();
    }
    Item& item = items_[given_ % kItems];
    // An item that the second thread failed to decode never becomes ready.
    while (given_ == filled_ ? !ended_ : item.state != Item::State::kReady && !failure_) {
        if (!decode_oldest(&lock)) {
            changed_.wait(lock);
        }
    }
    if (given_ == filled_ || item.state != Item::State::kReady) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return nullptr;
    }
    ++given_;
    return &item;
}

}  // namespace fragtrace::analyzer
