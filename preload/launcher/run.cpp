#include "launcher/run.h"

#include "launcher/libraries.h"
#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/refusal.h"
#include "launcher/traces.h"
#include "recorder/options.h"
#include "vgpu/common/shared_file.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

// Returns a name for this run that other runs are unlikely to have.
std::string new_job() {
    unsigned chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance) {
        chance = static_cast<unsigned>(getpid());
    }
    char text[32];
    snprintf(text, sizeof text, "%08lx%04x", time(nullptr) & 0xffffffff, chance & 0xffff);
    return text;
}

std::string variable(const char* name) {
    const char* value = getenv(name);
    return value == nullptr ? "" : value;
}

Program program_of(const Request& request, const Libraries& libraries) {
    Program program;
    program.file = find_command(request.command[0]);
    program.arguments = request.command;
    program.environment = request.settings;
    const auto set = [&program](const char* name, const std::string& value) {
        program.environment.emplace_back(name, value);
    };
    if (!libraries.preload.empty()) {
        set("LD_PRELOAD", preload_list(libraries.preload, variable("LD_PRELOAD")));
        set("ASAN_OPTIONS", sanitizer_options(variable("ASAN_OPTIONS")));
    }
    if (!libraries.search_folder.empty()) {
        const std::string users = variable("LD_LIBRARY_PATH");
        set("LD_LIBRARY_PATH", libraries.search_folder + (users.empty() ? "" : ':' + users));
        set("FRAGTRACE_VIRTUAL_GPU", request.virtual_gpu);
        // All processes of this run share its cards, and no others do.
        set("FRAGTRACE_VIRTUAL_GPU_CARDS", new_job());
    }
    return program;
}

}  // namespace

int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

FinishedRun run_command(const Request& request, HeldSignals* signals) {
    const Installation installation = find_installation();
    const Libraries libraries =
        choose_libraries(installation, request.record, !request.virtual_gpu.empty());
    Program program = program_of(request, libraries);
    FinishedRun run;
    if (request.record) {
        const std::string output = request.setting_of("FRAGTRACE_OUTPUT");
        run.output = prepare_output(output.empty() ? "." : output);
        const std::string keep_free = request.setting_of("FRAGTRACE_KEEP_FREE");
        if (const std::string warning = space_warning(run.output.folder, keep_free);
            !warning.empty()) {
            say(warning);
        }
        run.job = new_job();
        run.begin = folder_time(run.output.folder);
        run.quiet = request.quiet;
        run.off = preload::option_off();
        run.virtual_gpu = !request.virtual_gpu.empty();
        run.analyzer = installation.analyzer();
        program.environment.emplace_back("FRAGTRACE_OUTPUT", run.output.setting());
        program.environment.emplace_back("FRAGTRACE_JOB", run.job);
    }
    const Child child(program, *signals);
    run.process = child.id();
    run.status = signals->wait_for(child.id());
    timespec ended = {};
    clock_gettime(CLOCK_MONOTONIC, &ended);
    run.ended_ns = static_cast<std::uint64_t>(ended.tv_sec) * 1'000'000'000 +
                   static_cast<std::uint64_t>(ended.tv_nsec);
    if (!request.virtual_gpu.empty()) {
        vgpu::remove_left_over_files();
    }
    if (const int failure = child.failure(); failure != 0) {
        throw Refusal{exit_code_of(run.status),
                      request.command[0] + ": cannot be run: " + strerror(failure)};
    }
    signals->end_with(exit_code_of(run.status));
    return run;
}

}  // namespace fragtrace::launcher
