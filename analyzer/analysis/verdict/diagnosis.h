// Every out-of-memory and retry of a replayed run, diagnosed: verdict, address map at that
// moment, cheapest set of culprits. The verdict is itself a replay (verdict.h).
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
    HeapSnapshot heap;  // as in verdict.h: after the failed retry, or before the successful one
    CheapestSet cheapest;
    RoomWanted wanted;                     // by the request
    std::vector<std::uint64_t> held_open;  // per heap block, bytes
    std::uint64_t released_bytes = 0;      // retry: what the pool then gave back to the driver
};

// A fresh pool, and the device beneath it when refusals come from the record (else nullptr).
struct ReplaySetup {
    std::unique_ptr<Pool> pool;
    RecordedDevice* recorded = nullptr;  // owned by the pool
};

// Diagnoses at most `limit` of `troubles` (the first ones, all OOMs before any retry), which must
// come from a replay of the same script through the same kind of setup. Reported in time order.
std::vector<Diagnosis> diagnose(const ReplayScript& script,
                                const std::vector<Trouble>& troubles,
                                ReplaySetup setup,
                                std::uint64_t others_bytes,
                                std::size_t limit,
                                CoverBudget* budget = nullptr);

// The driver's refusals of requests that no pool made, on a device that has one: at most `limit`,
// the first ones, as RequestOutcomes tells them.
std::vector<LibraryRequest> refused_libraries(const Timeline& timeline,
                                              DeviceId device,
                                              std::size_t limit);

// Their diagnoses, in time order. Outcome kOutOfMemory, Trouble::step is the step before which they
// came.
std::vector<Diagnosis> diagnose_libraries(const ReplayScript& script,
                                          const std::vector<LibraryRequest>& requests,
                                          ReplaySetup setup,
                                          std::uint64_t others_bytes,
                                          CoverBudget* budget = nullptr);

}  // namespace fragtrace::analyzer
