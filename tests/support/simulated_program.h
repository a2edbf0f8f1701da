// A program made by hand that runs on the simulated PyTorch pool. It is recorded like by the
// recorder: its requests, and the driver calls that the pool makes for them.
#pragma once

#include "analyzer/pools/pool.h"
#include "tests/support/trace_writer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::testing {

class SimulatedProgram {
  public:
    // A card of `card_bytes`. The context and others use `others_bytes` of it.
    SimulatedProgram(std::uint64_t card_bytes,
                     std::uint64_t others_bytes = 0,
                     const std::string& settings = "");

    // Sets the line of the calls that follow.
    void at(const char* function, std::uint32_t line);

    // Returns the block's number. Failed requests are recorded as such and have one too.
    std::uint32_t alloc(std::uint64_t bytes,
                        std::uint64_t stream = 0,
                        std::uint32_t private_pool = 0);
    // `used_by`: another stream that still uses the block, which makes it pending.
    void free(std::uint32_t block, std::uint64_t used_by = 0);
    // A library outside the pool requests memory and is refused.
    void refuse_library(std::uint64_t bytes);

    // Others allocate so much of the card, unseen, after free memory was queried. Call it before
    // the first request. The pool's card must be smaller by this amount.
    void take_unseen(std::uint64_t bytes) { unseen_bytes_ = bytes; }

    // Part of the memory of others: the program's own context, as it was measured.
    void measure_context(std::uint64_t bytes) {
        trace_.fact("device.0.context_bytes", std::to_string(bytes));
    }

    // A torch.cuda.MemPool that is in use.
    void make_pool(std::uint32_t number);
    void begin_phase(const std::string& name);
    void end_phase();

    void save(const std::string& path);

  private:
    struct Block {
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;
    };

    std::map<std::uint32_t, std::uint64_t> segments();  // bytes by number
    void record_driver_calls(std::uint64_t asked_bytes, analyzer::Outcome outcome);
    void complete_events();

    TraceWriter trace_;
    std::unique_ptr<analyzer::Pool> pool_;
    std::uint64_t card_bytes_;
    std::map<std::uint32_t, std::uint64_t> known_;  // segments
    std::map<std::uint32_t, Block> blocks_;
    std::map<std::uint64_t, analyzer::StreamId> streams_;
    std::vector<std::uint64_t> waiting_;  // events that have not completed
    std::map<std::string, std::uint32_t> texts_;
    std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> lines_;  // stack node
    std::uint32_t next_block_ = 0;
    std::uint64_t next_event_ = 1;
    bool sampled_ = false;
    std::uint64_t unseen_bytes_ = 0;
    std::uint64_t reserved_ = 0;
};

}  // namespace fragtrace::testing
