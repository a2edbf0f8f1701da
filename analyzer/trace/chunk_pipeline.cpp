#include "analyzer/trace/chunk_pipeline.h"

#include "analyzer/trace/event_decoder.h"

namespace fragtrace::analyzer {

ChunkPipeline::ChunkPipeline(ChunkScanner* scanner) : scanner_(scanner) {
    thread_ = std::thread([this] { run(); });
}

ChunkPipeline::~ChunkPipeline() {
    {
        const Lock lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ChunkPipeline::run() {
    try {
        fill();
    } catch (...) {
        failure_ = std::current_exception();
    }
    const Lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
}

void ChunkPipeline::fill() {
    Lock lock(mutex_);
    while (!stop_) {
        Item& item = items_[filled_ % kItems];
        if (item.state != Item::State::kFree) {
            if (!decode_newest(&lock)) {
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
        lock.lock();
        item.state = events ? Item::State::kRaw : Item::State::kReady;
        ++filled_;
        changed_.notify_all();
    }
}

// The one that the other thread will need last. False: there is none to decode.
bool ChunkPipeline::decode_newest(Lock* lock) {
    for (std::size_t at = filled_; at-- > given_;) {
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

void ChunkPipeline::decode(Item* item) {
    item->decoded = decode_event_chunk(item->chunk, &item->events);
}

const ChunkPipeline::Item* ChunkPipeline::next() {
    Lock lock(mutex_);
    if (given_ != 0) {
        items_[(given_ - 1) % kItems].state = Item::State::kFree;
        changed_.notify_all();
    }
    Item& item = items_[given_ % kItems];
    changed_.wait(lock, [&] {
        return given_ < filled_
                   ? item.state == Item::State::kRaw || item.state == Item::State::kReady
                   : ended_;
    });
    if (given_ == filled_) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return nullptr;
    }
    ++given_;
    if (item.state == Item::State::kRaw) {
        item.state = Item::State::kTaken;
        lock.unlock();
        decode(&item);
    }
    return &item;
}

}  // namespace fragtrace::analyzer
