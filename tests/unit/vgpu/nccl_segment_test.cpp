// The names and members of NCCL's shared memory on the virtual GPU.
#include "libraries/nccl_segment.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace fragtrace::vgpu;

namespace {

std::string derived(const char* from, const std::string& agreed) {
    char key[kKeyBytes];
    derive_key(key, from, agreed.data(), agreed.size());
    return key;
}

}  // namespace

TEST_CASE("a derived key depends on the communicator's key and on all that the ranks agreed on") {
    const std::string key = derived("0123", "split 1");
    CHECK(key.size() == kKeyBytes - 1);
    CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(derived("0123", "split 1") == key);
    CHECK(derived("0124", "split 1") != key);
    CHECK(derived("0123", "split 2") != key);
    CHECK(derived("0123", "split 1 ") != key);
    char one[kKeyBytes];
    char other[kKeyBytes];
    REQUIRE(new_key(one));
    REQUIRE(new_key(other));
    CHECK(std::strlen(one) == kKeyBytes - 1);
    CHECK(std::string(one) != other);
}

TEST_CASE("a process runs until it ends, and a later one with its id is another process") {
    Process self = this_process();
    CHECK(self.id == getpid());
    CHECK(runs(self));
    ++self.start;
    CHECK_FALSE(runs(self));
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const Process own = this_process();
        const ssize_t written = write(ready[1], &own, sizeof own);
        _exit(written == sizeof own ? 0 : 1);
    }
    Process other{};
    REQUIRE(read(ready[0], &other, sizeof other) == sizeof other);
    CHECK(other.id == child);
    siginfo_t ended{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
    CHECK_FALSE(runs(other));  // it ended but was not waited for yet
    REQUIRE(waitpid(child, nullptr, 0) == child);
    CHECK_FALSE(runs(other));
    close(ready[0]);
    close(ready[1]);
}
