// A second thread touches the pages of a table before the first thread fills them.
#include "analyzer/support/touched_ahead.h"

#include "analyzer/support/threads.h"
#include "skip.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;

class Memory {
  public:
    Memory()
        : data_(static_cast<unsigned char*>(mmap(nullptr,
                                                 kBytes,
                                                 PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                                 -1,
                                                 0))) {
        REQUIRE(data_ != MAP_FAILED);
    }

    ~Memory() { munmap(data_, kBytes); }

    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    [[nodiscard]] unsigned char* data() const { return data_; }

    // The end of the last page that was touched, in bytes.
    [[nodiscard]] std::size_t touched() const {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        std::vector<unsigned char> here(kBytes / page);
        REQUIRE(mincore(data_, kBytes, here.data()) == 0);
        std::size_t pages = here.size();
        while (pages > 0 && (here[pages - 1] & 1) == 0) {
            --pages;
        }
        return pages * page;
    }

  private:
    unsigned char* data_;
};

}  // namespace

TEST_CASE("pages are touched at most a fixed distance before they are used") {
    const Memory memory;
    TouchedAhead ahead;
    ahead.start(memory.data(), kBytes);
    // A machine with one core, or an older kernel, touches nothing. The limit holds everywhere.
    constexpr std::size_t kPage = std::size_t{2} << 20;
    constexpr std::size_t kStep = std::size_t{1} << 20;
    for (std::size_t used = 0; used + kStep <= kBytes / 2; used += kStep) {
        std::memset(memory.data() + used, 0x5a, kStep);
        ahead.use(used + kStep);
        CHECK(memory.touched() <= used + kStep + TouchedAhead::kAheadBytes + kPage);
    }
    ahead.stop();
    for (std::size_t at = 0; at < kBytes / 2; at += 4096) {
        REQUIRE(memory.data()[at] == 0x5a);
    }
    CHECK(memory.data()[kBytes - 1] == 0);
}

TEST_CASE("the first pages are touched before anything is used", "[two-processors]") {
    const Memory memory;
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
    if (processors() < 2 || madvise(memory.data(), 4096, kPopulateWrite) != 0) {
        fragtrace::test::skip("needs two processors and Linux 5.14");
    }
    TouchedAhead ahead;
    ahead.start(memory.data(), kBytes);
    for (int i = 0; i < 6000 && memory.touched() < TouchedAhead::kAheadBytes; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(memory.touched() >= TouchedAhead::kAheadBytes);
}

TEST_CASE("a stopped thread touches no more pages, and another table can follow") {
    TouchedAhead ahead;
    {
        const Memory memory;
        ahead.start(memory.data(), kBytes);
        ahead.stop();
        ahead.use(kBytes);  // no effect
        CHECK(memory.touched() <= TouchedAhead::kAheadBytes + (std::size_t{2} << 20));
    }
    const Memory other;
    ahead.start(other.data(), kBytes);
    ahead.use(kBytes);
    ahead.stop();
}

TEST_CASE("a short table is not touched") {
    const Memory memory;
    TouchedAhead ahead;
    ahead.start(memory.data(), TouchedAhead::kAheadBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(memory.touched() == 0);
}
