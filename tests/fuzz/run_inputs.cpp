// Runs a target's inputs without libFuzzer: TARGET FILE|FOLDER...
//
// Each input runs in its own process with 10 seconds and 1 GiB. Exit status 1 if an input failed, 2
// if there are no inputs.
#include "tests/fuzz/harness.h"
#include "tests/support/trace_writer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostSeconds = 10;
constexpr long kMostKiB = 1 << 20;

bool withstood(const fs::path& input) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(kMostSeconds);
        const std::string bytes = fragtrace::testing::read_file(input.string());
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        std::exit(0);
    }
    int status = 0;
    rusage used = {};
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        std::perror("run_inputs");
        return false;
    }
    const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended && used.ru_maxrss <= kMostKiB) {
        return true;
    }
    std::fprintf(stderr,
                 "%s: %s, %ld KiB\n",
                 input.c_str(),
                 ended                         ? "too much memory"
                 : WIFEXITED(status)           ? "failed"
                 : WTERMSIG(status) == SIGALRM ? "too slow"
                                               : strsignal(WTERMSIG(status)),
                 used.ru_maxrss);
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<fs::path> inputs;
    for (int i = 1; i < argc; ++i) {
        if (fs::is_regular_file(argv[i])) {
            inputs.emplace_back(argv[i]);
        } else if (fs::is_directory(argv[i])) {
            inputs.insert(inputs.end(), fs::directory_iterator(argv[i]), {});
        }
    }
    const auto bad = std::count_if(
        inputs.begin(), inputs.end(), [](const fs::path& input) { return !withstood(input); });
    std::fprintf(stderr, "%zu inputs, %td not withstood\n", inputs.size(), bad);
    return bad != 0 ? 1 : inputs.empty() ? 2 : 0;
}
