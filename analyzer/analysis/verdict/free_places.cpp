#include "analyzer/analysis/verdict/free_places.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

using Key = std::tuple<std::uint32_t, SizeClass, StreamId>;

Key key_of(const FreePlace& place) {
    return {place.private_pool, place.size_class, place.stream};
}

// `place_of(segment, place)` gives the place to which a segment's blocks count; false: none.
template <typename PlaceOf>
FreePlaces sum_up(const HeapSnapshot& heap, const FreePlace& own, const PlaceOf& place_of) {
    std::map<Key, FreePlace> places;
    for (const HeapSegment& segment : heap.segments) {
        FreePlace at;
        if (!place_of(segment, &at)) {
            continue;
        }
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (block.state == BlockState::kFree) {
                FreePlace& place = places.try_emplace(key_of(at), at).first->second;
                place.free_bytes += block.size_bytes;
                place.largest_bytes = std::max(place.largest_bytes, block.size_bytes);
            }
        }
    }
    FreePlaces result;
    result.own = own;
    for (const auto& [key, place] : places) {
        if (key == key_of(own)) {
            result.own.free_bytes = place.free_bytes;
            result.own.largest_bytes = place.largest_bytes;
            continue;
        }
        result.elsewhere.push_back(place);
        result.elsewhere_bytes += place.free_bytes;
        result.elsewhere_largest_bytes =
            std::max(result.elsewhere_largest_bytes, place.largest_bytes);
    }
    std::stable_sort(
        result.elsewhere.begin(),
        result.elsewhere.end(),
        [](const FreePlace& a, const FreePlace& b) { return a.free_bytes > b.free_bytes; });
    if (result.elsewhere.size() > kMostFreePlaces) {
        result.places_left_out = result.elsewhere.size() - kMostFreePlaces;
        result.elsewhere.resize(kMostFreePlaces);
    }
    return result;
}

}  // namespace

FreePlaces free_by_stream(const HeapSnapshot& heap, const FreePlace& own) {
    return sum_up(heap, own, [&own](const HeapSegment& segment, FreePlace* place) {
        *place = {.stream = segment.stream,
                  .private_pool = segment.private_pool,
                  .size_class = segment.size_class};
        return segment.private_pool == own.private_pool && segment.size_class == own.size_class;
    });
}

FreePlaces free_by_pool(const HeapSnapshot& heap,
                        const FreePlace& own,
                        const std::vector<std::uint32_t>& left_out) {
    FreePlace pool = own;
    pool.stream = kNoStream;
    return sum_up(heap, pool, [&left_out](const HeapSegment& segment, FreePlace* place) {
        *place = {.private_pool = segment.private_pool, .size_class = segment.size_class};
        return std::find(left_out.begin(), left_out.end(), segment.private_pool) == left_out.end();
    });
}

}  // namespace fragtrace::analyzer
