#include "launcher/doctor.h"

#include <fragtrace/printable.h>
#include <fragtrace/pytorch_variables.h>

#include "launcher/bundle.h"
#include "launcher/command_line.h"
#include "launcher/finding.h"
#include "launcher/help.h"
#include "launcher/machine.h"
#include "launcher/option_texts.h"
#include "launcher/own_text.h"
#include "launcher/probe.h"
#include "launcher/refusal.h"
#include "launcher/scratch.h"
#include "launcher/target.h"
#include "vgpu/common/config.h"

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gnu/libc-version.h>
#include <string>
#include <string_view>
#include <sys/utsname.h>
#include <vector>

namespace fragtrace::launcher {
namespace {

constexpr const char* kDoctorText =
    R"(Checks this machine and says what `fragtrace run` will record: the driver and its cards, PyTorch and
Python, the folders for traces and ring, limits, containers, other libraries. Without COMMAND it looks
at the python in $PATH. It runs this interpreter once, without using CUDA. Of other programs it only
reads the files.

Examples
  fragtrace doctor                              this machine, and the python in $PATH
  fragtrace doctor -- .venv/bin/python          another interpreter
  fragtrace doctor -- ./simulation              a program
  fragtrace doctor --bundle report.tar.gz --trace train.myhost.4711.ftrace
                                                an archive to send with a report of a problem

Exit code: 0 if recording will work, 1 if not, 2 for bad usage.
)";

constexpr int kAnonymizeLimit_s = 600;

struct DoctorRequest {
    bool json = false;
    std::string bundle;
    std::string trace;
    std::vector<std::string> command;
};

std::string_view state_name(State state) {
    switch (state) {
        case State::kOk:
            return "ok";
        case State::kNote:
            return "note";
        case State::kProblem:
            break;
    }
    return "problem";
}

bool has_problem(const Findings& findings) {
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.state == State::kProblem;
    });
}

// The findings with each text in another form: plain() or hidden().
Findings with_texts(Findings findings, std::string (*form)(std::string_view)) {
    for (Finding& finding : findings) {
        finding.text = form(finding.text);
        finding.advice = form(finding.advice);
    }
    return findings;
}

std::string text_of(const Findings& findings, bool has_card) {
    constexpr std::size_t kColumn = 22;
    std::string text;
    for (const Finding& finding : findings) {
        add_row(&text,
                fmt::format("{:<7}  {}", state_name(finding.state), finding.topic),
                finding.text,
                kColumn);
        if (!finding.advice.empty()) {
            add_row(&text, "", finding.advice, kColumn);
        }
    }
    text += has_problem(findings) ? "Recording will not work as it is: see each problem above.\n"
            : has_card            ? "Recording will work: fragtrace run -- python train.py\n"
                                  : "Recording will work on the virtual GPU: "
                                    "fragtrace run --virtual-gpu 24GiB -- python train.py\n";
    return text;
}

std::string json_of(const Findings& findings, bool has_card) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
        all.push_back({{"topic", finding.topic},
                       {"state", state_name(finding.state)},
                       {"text", finding.text},
                       {"advice", finding.advice}});
    }
    const nlohmann::ordered_json document = {{"schema", 1},
                                             {"version", FRAGTRACE_VERSION},
                                             {"will_record", !has_problem(findings)},
                                             {"has_card", has_card},
                                             {"findings", std::move(all)}};
    return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

DoctorRequest parse(int argc, char** argv, bool* help) {
    CLI::App app(kDoctorText, "fragtrace doctor");
    DoctorRequest request;
    app.prefix_command();
    app.add_flag("--json", request.json, "print one JSON object (docs/schema/doctor.json)");
    app.add_option("--bundle",
                   request.bundle,
                   "write an archive with these lines, versions and settings; each path, and each "
                   "value that contains words of your own, is replaced by <hidden>")
        ->type_name("FILE.tar.gz");
    app.add_option("--trace",
                   request.trace,
                   "with --bundle: add this trace, anonymized (fraganalyze anonymize)")
        ->type_name("TRACE");
    if (!read_options(&app, argc, argv)) {
        *help = true;
        print_help(app, "[[--] COMMAND]");
        return request;
    }
    request.command = words_after_options(app);
    if (request.json && !request.bundle.empty()) {
        throw Refusal{kBadUsage,
                      "give --json or --bundle: an archive has both forms of the lines "
                      "(fragtrace doctor --help)"};
    }
    if (!request.trace.empty() && request.bundle.empty()) {
        throw Refusal{kBadUsage, "--trace needs --bundle FILE.tar.gz (fragtrace doctor --help)"};
    }
    return request;
}

// ---- the archive
// ----------------------------------------------------------------------------------

// The value of a line such as ID=debian or ID="debian".
std::string without_quotes(std::string value) {
    std::erase(value, '"');
    return value;
}

std::string system_lines() {
    utsname system = {};
    uname(&system);
    std::string text = fmt::format("fragtrace {}\nkernel {} {}\nmachine {}\nglibc {}\n",
                                   FRAGTRACE_VERSION,
                                   own(system.sysname),
                                   own(system.release),
                                   own(system.machine),
                                   gnu_get_libc_version());
    std::ifstream release("/etc/os-release");
    for (std::string line; std::getline(release, line);) {
        if (line.starts_with("ID=") || line.starts_with("VERSION_ID=")) {
            text += "system " + own(without_quotes(line.substr(line.find('=') + 1))) + '\n';
        }
    }
    return text;
}

// The variables that change what is recorded, besides those of options.def and of the virtual GPU.
// No other variable gets into the archive: its name alone could be that of a project.
constexpr const char* kOtherVariables[] = {"FRAGTRACE_VIRTUAL_GPU",
                                           "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                           "PYTORCH_NVML_BASED_CUDA_CHECK",
                                           "CUDA_DEVICE_MAX_CONNECTIONS",
                                           "CUDA_DEVICE_ORDER",
                                           "CUDA_INJECTION64_PATH",
                                           "CUDA_LAUNCH_BLOCKING",
                                           "CUDA_MODULE_LOADING",
                                           "CUDA_MPS_PIPE_DIRECTORY",
                                           "CUDA_VISIBLE_DEVICES",
                                           "NVIDIA_DRIVER_CAPABILITIES",
                                           "NVIDIA_VISIBLE_DEVICES",
                                           "LD_AUDIT",
                                           "LD_LIBRARY_PATH",
                                           "LD_PRELOAD",
                                           "TF_FORCE_GPU_ALLOW_GROWTH",
                                           "TF_GPU_ALLOCATOR",
                                           "XLA_PYTHON_CLIENT_ALLOCATOR",
                                           "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                           "XLA_PYTHON_CLIENT_PREALLOCATE"};

std::string settings_lines() {
    std::string text;
    const auto add = [&text](const char* name) {
        if (const char* value = getenv(name); value != nullptr) {
            text += fmt::format("{}={}\n", name, own(value));
        }
    };
    for (const OptionText& row : kOptionTexts) {
        add(row.variable);
    }
    for (const vgpu::Variable& variable : vgpu::kVariables) {
        add(variable.name);
    }
    for (const PytorchVariable& variable : kPytorchVariables) {
        add(variable.name);
    }
    for (const char* name : kOtherVariables) {
        add(name);
    }
    return text.empty() ? "none set\n" : text;
}

void anonymize(const Installation& installation, const std::string& trace, const std::string& to) {
    const Probe done = probe_command(
        {find_analyzer(installation), "anonymize", "--", trace, to}, {}, kAnonymizeLimit_s);
    if (!done.succeeded()) {
        throw Refusal{kBadUsage,
                      done.in_time && !done.errors.empty()
                          ? printable(done.errors.substr(0, done.errors.find('\n')))
                          : printable(trace) + ": cannot be anonymized"};
    }
}

void make_bundle(const DoctorRequest& request,
                 const Installation& installation,
                 const Findings& findings,
                 bool has_card) {
    const Scratch scratch("bundle");
    std::string trace;
    if (!request.trace.empty()) {
        trace = scratch.file("trace.ftrace");
        anonymize(installation, request.trace, trace);
    }
    std::string list =
        "doctor.txt    the lines of fragtrace doctor\n"
        "doctor.json   the same for programs\n"
        "versions.txt  versions of fragtrace, kernel, C library and distribution\n"
        "settings.txt  variables that change what is recorded\n";
    if (!trace.empty()) {
        list += "trace.ftrace  the trace: sizes, times and the shape of stacks, without names\n";
    }
    list += "<hidden> replaces each path, and each value or message that has a word of your own.\n";
    const Findings anonymous = with_texts(findings, hidden);
    std::vector<BundleFile> files = {
        {"README.txt", list, ""},
        {"doctor.txt", text_of(anonymous, has_card), ""},
        {"doctor.json", json_of(anonymous, has_card), ""},
        {"versions.txt", hidden(system_lines()), ""},
        {"settings.txt", hidden(settings_lines()), ""},
    };
    if (!trace.empty()) {
        files.push_back({"trace.ftrace", "", trace});
    }
    write_bundle(request.bundle, files);
    print_output(
        fmt::format("Written: {}. It contains\n{}Look at it before you send it: tar -xzf {}\n",
                    printable(request.bundle),
                    list,
                    printable(request.bundle)));
}

}  // namespace

int doctor(int argc, char** argv) {
    bool help = false;
    const DoctorRequest request = parse(argc, argv, &help);
    if (help) {
        return 0;
    }
    signal(SIGXFSZ, SIG_IGN);  // the ring and the archive are only tried
    const Installation installation = find_installation();
    Findings findings;
    bool has_card = false;
    look_at_installation(installation, &findings);
    look_at_driver(installation, &has_card, &findings);
    look_at_target(installation, request.command, has_card, &findings);
    look_at_trace_folder(&findings);
    look_at_ring(&findings);
    look_at_limits(&findings);
    look_at_container(&findings);
    look_at_other_tools(&findings);
    if (!request.bundle.empty()) {
        make_bundle(request, installation, findings, has_card);
    } else {
        const Findings shown = with_texts(findings, plain);
        print_output(request.json ? json_of(shown, has_card) : text_of(shown, has_card));
    }
    return has_problem(findings) ? 1 : 0;
}

}  // namespace fragtrace::launcher
