#include "analyzer/trace/chunk_pipeline.h"

namespace fragtrace::analyzer {

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

// The one that is needed first. False: there is none to decode.
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
    while (given_ == filled_ ? !ended_ : item.state != Item::State::kReady) {
        if (!decode_oldest(&lock)) {
            changed_.wait(lock);
        }
    }
    if (given_ == filled_) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return nullptr;
    }
    ++given_;
    return &item;
}

template class ChunkPipeline<EventPiece>;
template class ChunkPipeline<EventRecords>;

}  // namespace fragtrace::analyzer
