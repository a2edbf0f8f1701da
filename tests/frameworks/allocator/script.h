// The language of the scripts that the real and the simulated allocator are both given; standard
// input holds any number of them. One call per line:
//
//   script NAME            begins one
//   config TEXT            initial settings, may be empty
//   card TOTAL CAPACITY    bytes
//   addresses ORDER SEED   of segments (AddressOrder)
//   streams HANDLE...      below, a stream is an index into these
//   a ID BYTES STREAM      allocate, in the pool that is routed to
//   r ID STREAM            record_stream
//   f ID                   free
//   w STREAM KEEP          the events recorded on a stream complete, but for the newest KEEP
//   e | E POOL             empty_cache, of one private pool
//   m FRACTION | s TEXT    memory fraction, settings at run time
//   p POOL FLAGS           a private pool: 1 = no_split, 2 = use_on_oom
//   b POOL | n POOL        route to the pool, no longer
//   d POOL                 the pool's owner goes
//   c 1 | c 0              a stream capture begins, ends
//
// A call about an ID that could not be allocated does nothing, on both sides.
//
// What comes out, per script: "script NAME", events ("ev KIND ADDRESS BYTES"), sizes that the
// driver refused ("refused BYTES"), calls that failed ("failed TEXT"), the layout and the
// statistics. Standard C++ only: the real side is compiled against the headers of any release.
#pragma once

#include <cstdint>
#include <istream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

struct ScriptHead {
    std::string name;
    std::string config;
    std::uint64_t total_bytes = 0;
    std::uint64_t capacity_bytes = 0;
    int address_order = 0;
    std::uint64_t seed = 0;
    std::vector<std::uint64_t> streams;
};

struct Call {
    char kind = 0;
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    std::string text;
};

struct AllocatorScript {
    ScriptHead head;
    std::vector<Call> calls;
};

// Drops calls about private pools that a program could not make. Such calls remain when other calls
// are removed from a script.
class PoolCalls {
  public:
    bool possible(const Call& call) {
        const std::uint64_t pool = call.first;
        switch (call.kind) {
            case 'p':
                return alive_.insert(pool).second;
            case 'b':
                return alive_.contains(pool) && routed_.insert(pool).second;
            case 'n':
                return routed_.erase(pool) != 0;
            case 'd':
                return !routed_.contains(pool) && alive_.erase(pool) != 0;
            case 'c':
                return std::exchange(capturing_, pool != 0) != (pool != 0);
            case 'e':
            case 'E':
                return !capturing_;
            default:
                return true;
        }
    }

  private:
    std::set<std::uint64_t> alive_;
    std::set<std::uint64_t> routed_;
    bool capturing_ = false;
};

inline std::vector<AllocatorScript> read_scripts(std::istream& in) {
    std::vector<AllocatorScript> scripts;
    PoolCalls pool_calls;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string kind;
        words >> kind;
        if (kind == "script") {
            words >> scripts.emplace_back().head.name;
            pool_calls = {};
            continue;
        }
        if (scripts.empty() || kind.empty()) {
            continue;
        }
        ScriptHead& head = scripts.back().head;
        if (kind == "config") {
            words >> head.config;
        } else if (kind == "card") {
            words >> head.total_bytes >> head.capacity_bytes;
        } else if (kind == "addresses") {
            words >> head.address_order >> head.seed;
        } else if (kind == "streams") {
            for (std::uint64_t handle = 0; words >> handle;) {
                head.streams.push_back(handle);
            }
        } else {
            Call call;
            call.kind = kind[0];
            if (call.kind == 's' || call.kind == 'm') {
                words >> call.text;
            } else {
                words >> call.first >> call.second >> call.third;
            }
            if (pool_calls.possible(call)) {
                scripts.back().calls.push_back(call);
            }
        }
    }
    return scripts;
}
