#include "launcher/try_command.h"

#include <fragtrace/printable.h>

#include "launcher/program.h"
#include "launcher/refusal.h"
#include "launcher/try_report.h"
#include "vgpu/common/config.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The fact `arguments`: one argument per line, backslashes doubled, newlines as \n.
std::vector<std::string> arguments_of(const std::string& fact) {
    std::vector<std::string> arguments(1);
    for (std::size_t i = 0; i < fact.size(); ++i) {
        if (fact[i] == '\n') {
            arguments.emplace_back();
        } else if (fact[i] == '\\' && i + 1 < fact.size()) {
            ++i;
            arguments.back() += fact[i] == 'n' ? '\n' : fact[i];
        } else {
            arguments.back() += fact[i];
        }
    }
    return arguments;
}

// A trace is a file of unknown origin. Its command is run only if this user recorded it here.
void check_owner(const std::string& trace, const Json& facts) {
    struct stat file = {};
    utsname here = {};
    uname(&here);
    const char* reason =
        stat(trace.c_str(), &file) != 0 ? "cannot be read"
        : text(facts, "host").empty()
            ? "does not have the command (snapshots, recordings of other tools and anonymized "
              "traces do not have it)"
        : file.st_uid != geteuid()                  ? "belongs to another user"
        : (file.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "can be changed by other users"
        : text(facts, "host") != here.nodename      ? "was recorded on another machine"
        : text(facts, "arguments").empty() ? "does not have the command (an earlier version "
                                             "recorded it, or the command line is too "
                                             "long)"
                                           : nullptr;
    if (reason != nullptr) {
        throw Refusal{kBadUsage,
                      fmt::format("{} {}: its command is not run. Give the command: fragtrace try "
                                  "{} -- COMMAND",
                                  printable(trace),
                                  reason,
                                  printable(trace))};
    }
}

}  // namespace

std::vector<std::string> recorded_command(const std::string& trace, const Json& facts, int rank) {
    check_owner(trace, facts);
    if (rank >= 0) {
        throw Refusal{
            kBadUsage,
            fmt::format("{} is rank {} of a job, which cannot run alone. Give the command "
                        "of the job: fragtrace try {} -- torchrun ...",
                        printable(trace),
                        rank,
                        printable(trace))};
    }
    std::vector<std::string> command = arguments_of(text(facts, "arguments"));
    const std::string folder = text(facts, "working_directory");
    if (chdir(folder.c_str()) != 0) {
        throw Refusal{
            kBadUsage,
            fmt::format("the recorded folder {}: {}", printable(folder), strerror(errno))};
    }
    std::error_code failed;
    const fs::path found = fs::canonical(find_command(command[0]), failed);
    const std::string recorded = text(facts, "executable");
    if (found != fs::path(recorded)) {
        throw Refusal{
            kBadUsage,
            fmt::format("{} is {} here; {} was recorded. Activate the same environment, or "
                        "give the command: fragtrace try {} -- COMMAND",
                        printable(command[0]),
                        printable(found.native()),
                        printable(recorded),
                        printable(trace))};
    }
    return command;
}

std::string recorded_card(const Json& report) {
    if (!report["source"].value("virtual", false)) {
        return "";
    }
    std::string card = text(report["facts"], "environment.FRAGTRACE_VIRTUAL_GPU");
    // This run gets cards of its own: other processes must not take part in it.
    if (const std::size_t shared = card.find(",shared="); shared != std::string::npos) {
        card.erase(shared, card.find(',', shared + 1) - shared);
    }
    const bool valid = vgpu::parse_config(card.c_str(), nullptr).status == vgpu::Config::kValid;
    return valid ? card : std::to_string(number(device_of(report), "total_bytes"));
}

std::vector<std::pair<std::string, std::string>> environment_of(const Json& facts,
                                                                const Json& row) {
    std::vector<std::pair<std::string, std::string>> environment;
    // By name: a trace from others must not set a variable such as LD_PRELOAD.
    const auto take = [&](const char* name) {
        const std::string key = std::string("environment.") + name;
        if (facts.contains(key)) {
            environment.emplace_back(name, text(facts, key.c_str()));
        }
    };
    for (const PytorchVariable& variable : kPytorchVariables) {
        take(variable.name);
    }
    for (const char* name :
         {"PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA_VISIBLE_DEVICES", "CUDA_MODULE_LOADING"}) {
        take(name);
    }
    if (text(row, "remedy") == "caching_off") {
        environment.emplace_back("PYTORCH_NO_CUDA_MEMORY_CACHING", "1");
    } else {
        environment.emplace_back(kSettings, text(row, "config"));
    }
    return environment;
}

}  // namespace fragtrace::launcher
