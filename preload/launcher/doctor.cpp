#include "launcher/doctor.h"

#include "launcher/bundle.h"
#include "launcher/finding.h"
#include "launcher/help.h"
#include "launcher/machine.h"
#include "launcher/option_texts.h"
#include "launcher/probe.h"
#include "launcher/refusal.h"
#include "launcher/target.h"

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gnu/libc-version.h>
#include <string>
#include <sys/utsname.h>
#include <vector>

extern char** environ;

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText =
    R"(Checks this machine and says what `fragtrace run` will record: the driver and its cards, PyTorch and
Python, the folders for traces and ring, limits, containers, other libraries. Without COMMAND it looks
at the python in $PATH. It runs this interpreter once, without a use of CUDA. Other programs are only read.

Examples
  fragtrace doctor                              this machine, and the python in $PATH
  fragtrace doctor -- .venv/bin/python          another interpreter
  fragtrace doctor -- ./simulation              a program
  fragtrace doctor --bundle report.tar.gz --trace train.4711.ftrace
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
    CLI::App app(kText, "fragtrace doctor");
    DoctorRequest request;
    app.prefix_command();
    app.add_flag("--json", request.json, "print one JSON object (docs/schema/doctor.json)");
    app.add_option("--bundle",
                   request.bundle,
                   "write an archive with these lines, versions and settings; without the names of "
                   "user and host, and without your paths")
        ->type_name("FILE.tar.gz");
    app.add_option("--trace",
                   request.trace,
                   "with --bundle: add this trace, anonymized (fraganalyze anonymize)")
        ->type_name("TRACE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        *help = true;
        if (fputs(app.help().c_str(), stdout) < 0 || fflush(stdout) != 0) {
            throw Refusal{kBadUsage, "standard output: cannot be written"};
        }
        return request;
    } catch (const CLI::ParseError& error) {
        throw Refusal{kBadUsage, one_line(error.what()) + " (fragtrace doctor --help)"};
    }
    request.command = app.remaining();
    if (!request.command.empty() && request.command.front() == "--") {
        request.command.erase(request.command.begin());
    } else if (!request.command.empty() && request.command.front().starts_with('-')) {
        throw Refusal{
            kBadUsage,
            "unknown option " + one_line(request.command.front()) + " (fragtrace doctor --help)"};
    }
    if (!request.trace.empty() && request.bundle.empty()) {
        throw Refusal{kBadUsage, "--trace needs --bundle FILE.tar.gz (fragtrace doctor --help)"};
    }
    return request;
}

// ---- the archive
// ----------------------------------------------------------------------------------

std::string system_lines() {
    utsname system = {};
    uname(&system);
    std::string text = fmt::format("fragtrace {}\nkernel {} {}\nmachine {}\nglibc {}\n",
                                   FRAGTRACE_VERSION,
                                   system.sysname,
                                   system.release,
                                   system.machine,
                                   gnu_get_libc_version());
    std::ifstream release("/etc/os-release");
    for (std::string line; std::getline(release, line);) {
        if (line.starts_with("PRETTY_NAME=")) {
            text += "system " + one_line(line.substr(line.find('=') + 1)) + '\n';
        }
    }
    return text;
}

std::string settings_lines() {
    std::string text;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view line = *entry;
        for (const std::string_view begin : {"FRAGTRACE_",
                                             "PYTORCH_",
                                             "CUDA_",
                                             "LD_PRELOAD=",
                                             "LD_LIBRARY_PATH=",
                                             "TF_GPU_ALLOCATOR=",
                                             "XLA_PYTHON_CLIENT_"}) {
            if (line.starts_with(begin)) {
                text += one_line(line) + '\n';
                break;
            }
        }
    }
    return text.empty() ? "none set\n" : text;
}

// A folder that is removed with everything in it.
class Scratch {
  public:
    Scratch() {
        std::error_code failed;
        path_ = (fs::temp_directory_path(failed) / "fragtrace-bundle-XXXXXX").native();
        if (mkdtemp(path_.data()) == nullptr) {
            throw Refusal{kBadUsage, "cannot make a temporary folder in $TMPDIR"};
        }
    }

    ~Scratch() {
        std::error_code failed;
        fs::remove_all(path_, failed);
    }

    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] std::string file(const char* name) const { return path_ + '/' + name; }

  private:
    std::string path_;
};

void anonymize(const Installation& installation, const std::string& trace, const std::string& to) {
    const Probe done = probe_command(
        {installation.analyzer(), "anonymize", "--", trace, to}, {}, kAnonymizeLimit_s);
    if (!done.succeeded()) {
        throw Refusal{kBadUsage,
                      done.in_time && !done.errors.empty()
                          ? one_line(done.errors.substr(0, done.errors.find('\n')))
                          : one_line(trace) + ": cannot be anonymized"};
    }
}

void make_bundle(const DoctorRequest& request,
                 const Installation& installation,
                 const Findings& findings,
                 bool has_card) {
    const Scratch scratch;
    std::string trace;
    if (!request.trace.empty()) {
        trace = scratch.file("trace.ftrace");
        anonymize(installation, request.trace, trace);
    }
    std::string list =
        "doctor.txt    the lines of fragtrace doctor\n"
        "doctor.json   the same for programs\n"
        "versions.txt  versions of fragtrace, kernel, C library and distribution\n"
        "settings.txt  variables that begin with FRAGTRACE_, PYTORCH_ or CUDA_, and LD_PRELOAD, "
        "LD_LIBRARY_PATH and the like\n";
    if (!trace.empty()) {
        list += "trace.ftrace  the trace: sizes, times and the shape of stacks, without names\n";
    }
    list +=
        "The names of user and host, your paths and the ids of cards are replaced by <user>, "
        "<host>, "
        "<path> and <id>.\n";
    fmt::print("{} will contain\n{}", one_line(request.bundle), list);
    fflush(stdout);
    Findings anonymous = findings;
    for (Finding& finding : anonymous) {
        finding.text = without_names(finding.text);
        finding.advice = without_names(finding.advice);
    }
    std::vector<BundleFile> files = {
        {"README.txt", list, ""},
        {"doctor.txt", text_of(anonymous, has_card), ""},
        {"doctor.json", json_of(anonymous, has_card), ""},
        {"versions.txt", without_names(system_lines()), ""},
        {"settings.txt", without_names(settings_lines()), ""},
    };
    if (!trace.empty()) {
        files.push_back({"trace.ftrace", "", trace});
    }
    write_bundle(request.bundle, files);
    fmt::print("Written. Look at it before you send it: tar -xzf {}\n", one_line(request.bundle));
    fflush(stdout);
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
        const std::string text =
            request.json ? json_of(findings, has_card) : text_of(findings, has_card);
        if (fputs(text.c_str(), stdout) < 0 || fflush(stdout) != 0) {
            throw Refusal{kBadUsage, "standard output: cannot be written"};
        }
    }
    return has_problem(findings) ? 1 : 0;
}

}  // namespace fragtrace::launcher
