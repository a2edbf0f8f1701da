// The place of a process in its job, from header and facts of its trace.
#include "analyzer/trace/job_place.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

using Facts = std::map<std::string, std::string>;

JobPlace place_of(int rank, const Facts& facts) {
    TraceHeader header = {};
    header.rank = rank;
    header.local_rank = rank;
    header.pid = 4711;
    header.process_start_ticks = 99;
    std::memcpy(header.host, "n1", 3);
    return job_place(header, facts);
}

}  // namespace

TEST_CASE("the rank of the environment is used, with its source") {
    const JobPlace place = place_of(
        3, {{"rank.source", "RANK"}, {"world_size", "8"}, {"generation", "2"}, {"job.id", "17"}});
    CHECK(place.rank == 3);
    CHECK(place.local_rank == 3);
    CHECK(place.rank_source == "RANK");
    CHECK(place.world_size == 8);
    CHECK(place.generation == 2);
    CHECK(place.job_id == "17");
    CHECK(place.host == "n1");
    CHECK(place.process == ProcessId{4711, 99});
}

TEST_CASE("NCCL's rank counts if its communicator is at least as large as the known world") {
    const JobPlace none = place_of(-1, {{"nccl.rank", "2 of 4"}});
    CHECK(none.rank == 2);
    CHECK(none.world_size == 4);
    CHECK(none.rank_source == kRankFromNccl);
    // A batch script's rank 0 is inherited by all ranks that the program starts.
    const JobPlace batch = place_of(
        0, {{"rank.source", "SLURM_PROCID"}, {"world_size", "1"}, {"nccl.rank", "2 of 4"}});
    CHECK(batch.rank == 2);
    CHECK(batch.local_rank == -1);
    const JobPlace helper = place_of(-1, {{"rank.inherited", "0"}, {"nccl.rank", "1 of 4"}});
    CHECK(helper.rank == 1);
    CHECK(helper.inherited_rank == -1);
    const JobPlace same = place_of(2, {{"rank.source", "RANK"}, {"nccl.rank", "2 of 4"}});
    CHECK(same.rank_source == "RANK");
    CHECK(same.local_rank == 2);
    const JobPlace group =
        place_of(5, {{"rank.source", "RANK"}, {"world_size", "8"}, {"nccl.rank", "1 of 2"}});
    CHECK(group.rank == 5);
    CHECK(group.world_size == 8);
}

TEST_CASE("a helper process has no rank, but names the one that it inherited") {
    const JobPlace place = place_of(-1, {{"rank.inherited", "7"}});
    CHECK(place.rank == -1);
    CHECK(place.inherited_rank == 7);
    CHECK(place_of(3, {{"rank.inherited", "7"}}).inherited_rank == -1);
}

TEST_CASE("ancestors are read, the parent first") {
    CHECK(place_of(0, {{"ancestors", "10:5 9:4"}}).ancestors ==
          std::vector<ProcessId>{{10, 5}, {9, 4}});
    std::string many;
    for (int i = 0; i < 1000; ++i) {
        many += "10:5 ";
    }
    CHECK(place_of(0, {{"ancestors", many}}).ancestors.size() == 64);
}

TEST_CASE("damaged facts and headers are unknown, not numbers") {
    for (const char* text : {"", "x", "-1", "3x", "99999999999999999999", " 3", "0x3"}) {
        CAPTURE(text);
        const JobPlace place = place_of(-7,
                                        {{"world_size", text},
                                         {"generation", text},
                                         {"rank.inherited", text},
                                         {"nccl.rank", text}});
        CHECK(place.rank == -1);
        CHECK(place.local_rank == -1);
        CHECK(place.world_size == -1);
        CHECK(place.generation == -1);
        CHECK(place.inherited_rank == -1);
    }
    for (const char* text : {"4 of 4", "-1 of 4", "1 of", " of 4", "1 of 4 of 8", "1 of x"}) {
        CAPTURE(text);
        CHECK(place_of(-1, {{"nccl.rank", text}}).rank == -1);
    }
    for (const char* text : {"", ":", "10", "10:", ":5", "10:5  9:4", "99999999999:1", "a:b"}) {
        CAPTURE(text);
        CHECK(place_of(0, {{"ancestors", text}}).ancestors.empty());
    }
    TraceHeader header = {};
    std::memset(header.host, 'x', sizeof header.host);  // without an end
    CHECK(job_place(header, {}).host == std::string(sizeof header.host, 'x'));
    std::memset(header.host, 0, sizeof header.host);
    CHECK(job_place(header, {{"host", "old"}}).host == "old");
}
