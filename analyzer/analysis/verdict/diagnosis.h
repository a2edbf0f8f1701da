// Diagnoses the out-of-memories and retries of a replayed run: verdict, address map at that moment,
// cheapest set of blocks that prevent the request. The verdict is itself found by replay
// (verdict.h).
#pragma once

#include "analyzer/analysis/verdict/culprits.h"
#include "analyzer/analysis/verdict/room_without.h"
#include "analyzer/analysis/verdict/verdict.h"
#include "analyzer/replay/replayer.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace fragtrace::analyzer {

struct Diagnosis {
    Trouble trouble;
    Verdict verdict;
    // After the failed retry of an out-of-memory, or before a successful retry (verdict.h).
    HeapSnapshot heap;
    CheapestSet cheapest;
    RoomWanted wanted;  // what the request needs
    // Bytes that each block of `heap` keeps from being released.
    std::vector<std::uint64_t> held_open;
    // Retry: bytes that the pool returned to the driver during it.
    std::uint64_t released_bytes = 0;
};

// A new pool. `recorded` is its device if refusals come from the recording, else nullptr.
struct ReplaySetup {
    std::unique_ptr<Pool> pool;
    RecordedDevice* recorded = nullptr;  // owned by the pool
    // The capacity of the recorded device at an event, for diagnoses of out-of-memories: other
    // processes may free or allocate memory during the run. Empty: it does not change. Events are
    // asked for in ascending order.
    std::function<std::uint64_t(EventIndex)> capacity_at = {};
};

// Diagnoses at most `limit` of `troubles`: the first ones, with all OOMs before any retry, and in
// any case the one at the event `always`. They must come from a replay of the same script with the
// same kind of setup. The result is in time order.
std::vector<Diagnosis> diagnose(const ReplayScript& script,
                                const std::vector<Trouble>& troubles,
                                ReplaySetup setup,
                                std::uint64_t others_bytes,
                                std::size_t limit,
                                EventIndex always = kNoEvent,
                                CoverBudget* budget = nullptr);

// Requests outside the pool that the driver refused, on a device that has a pool. At most `limit`,
// the first ones that RequestOutcomes reports.
std::vector<LibraryRequest> refused_libraries(const Timeline& timeline,
                                              DeviceId device,
                                              std::size_t limit);

// Diagnoses these requests, in time order. Their outcome is kOutOfMemory. Trouble::step is the
// first step after the request.
std::vector<Diagnosis> diagnose_libraries(const ReplayScript& script,
                                          const std::vector<LibraryRequest>& requests,
                                          ReplaySetup setup,
                                          std::uint64_t others_bytes,
                                          CoverBudget* budget = nullptr);

}  // namespace fragtrace::analyzer
