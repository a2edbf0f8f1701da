#include "analyzer/analysis/iterations/requests.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/model/pair_map.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// Numbers the distinct pairs of native and Python stack.
std::vector<std::uint32_t> stacks_of_origins(const Timeline& timeline,
                                             std::vector<OriginId>* examples) {
    std::vector<std::uint32_t> stacks(std::max<std::size_t>(1, timeline.origins.size()));
    PairMap known;
    for (OriginId id = 0; id < stacks.size(); ++id) {
        const Origin origin = id < timeline.origins.size() ? timeline.origins[id] : Origin{};
        const std::uint64_t key = std::uint64_t{origin.native_stack} << 32 | origin.python_stack;
        std::uint32_t stack = known.find(key, 0);
        if (stack == PairMap::kAbsent) {
            stack = static_cast<std::uint32_t>(examples->size());
            examples->push_back(id);
            known.set(key, 0, stack);
        }
        stacks[id] = stack;
    }
    return stacks;
}

// Divides the requests of each stack by label.
void divide_by_label(const Timeline& timeline, Requests* requests) {
    const auto has_label = [](const Origin& origin) { return origin.label != 0; };
    if (std::none_of(timeline.origins.begin(), timeline.origins.end(), has_label)) {
        for (std::uint32_t stack = 0; stack < requests->origins.size(); ++stack) {
            requests->labelled_stacks.push_back({stack, requests->origins[stack]});
        }
        return;
    }
    requests->labelled_of.reserve(requests->size());
    PairMap known;
    for (std::size_t i = 0; i < requests->size(); ++i) {
        const OriginId origin = timeline.events[requests->events[i]].origin;
        const std::uint32_t label =
            origin < timeline.origins.size() ? timeline.origins[origin].label : 0;
        std::uint32_t number = known.find(requests->stacks[i], label);
        if (number == PairMap::kAbsent) {
            number = static_cast<std::uint32_t>(requests->labelled_stacks.size());
            requests->labelled_stacks.push_back({requests->stacks[i], origin});
            known.set(requests->stacks[i], label, number);
        }
        requests->labelled_of.push_back(number);
    }
}

}  // namespace

Requests requests_of(const Timeline& timeline, DeviceId device, bool blocks) {
    Requests requests;
    const std::vector<std::uint32_t> by_origin = stacks_of_origins(timeline, &requests.origins);
    const bool by_size = requests.origins.size() <= 1;
    const auto is_request = [&timeline, blocks](EventIndex i) {
        const EventKind kind = timeline.events.kind(i);
        return blocks ? kind == EventKind::kBlockAlloc : is_device_allocation(kind);
    };
    // Count first: growing by copies would briefly need twice the memory, in addition to that of
    // the replays.
    std::size_t most = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        most += is_request(i) ? 1 : 0;
    }
    requests.events.reserve(most);
    requests.stacks.reserve(most);
    PairMap sizes;
    std::size_t checkpoint = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        while (checkpoint < timeline.checkpoints.size() &&
               timeline.checkpoints[checkpoint].end < i) {
            ++checkpoint;
        }
        const bool told =
            checkpoint < timeline.checkpoints.size() && timeline.checkpoints[checkpoint].begin <= i;
        if (!is_request(i) || told || timeline.events.device(i) != device) {
            continue;
        }
        const Event event = timeline.events[i];
        std::uint32_t stack = event.origin < by_origin.size() ? by_origin[event.origin] : 0;
        if (by_size) {
            stack = sizes.find(event.size_bytes, 0);
            if (stack == PairMap::kAbsent) {
                stack = static_cast<std::uint32_t>(sizes.size());
                sizes.set(event.size_bytes, 0, stack);
            }
            requests.origins.resize(std::max<std::size_t>(requests.origins.size(), stack + 1));
        }
        requests.events.push_back(i);
        requests.stacks.push_back(stack);
    }
    divide_by_label(timeline, &requests);
    return requests;
}

std::uint64_t allocated_bytes(const Event& request) {
    const std::uint64_t bytes =
        request.kind == EventKind::kBlockAlloc ? request.extra : device_bytes(request);
    return bytes == kUnknown64 ? 0 : bytes;
}

}  // namespace fragtrace::analyzer
