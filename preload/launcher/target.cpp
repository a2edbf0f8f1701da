#include "launcher/target.h"

#include "launcher/own_text.h"
#include "launcher/probe.h"
#include "launcher/program.h"
#include "launcher/refusal.h"
#include "stacks/python_layout.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>
#include <sys/stat.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kInterpreterLimit_s = 30;
// The releases of docs/compatibility.md.
constexpr int kFirstTorchMinor = 0;  // 2.0
constexpr int kLastTorchMinor = 15;  // 2.15

// Prints KEY TAB VALUE lines. Modules are found, not imported: an import takes seconds and may use
// CUDA. The current folder is no place for modules here.
constexpr const char* kQuestions = R"(
import sys
sys.path = [folder for folder in sys.path if folder not in ('', '.')]
def tell(key, value):
    print(key, str(value).replace('\t', ' ').replace('\n', ' '), sep='\t')
tell('version', sys.version)
tell('implementation', sys.implementation.name)
tell('bits', 64 if sys.maxsize > 2 ** 32 else 32)
tell('executable', sys.executable)
import os
tell('conda', os.path.isdir(os.path.join(sys.prefix, 'conda-meta')))
tell('virtual', sys.prefix != sys.base_prefix)
try:
    with open('/proc/self/maps') as maps:
        tell('recorder', 'libfragtrace.so' in maps.read())
except OSError:
    pass
import importlib.util
for name in ('torch', 'tensorflow', 'jax', 'cupy', 'rmm'):
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            tell('module.' + name, found.origin)
    except Exception:
        pass
    if name == 'torch' and found is not None and found.origin is not None:
        folder = os.path.dirname(found.origin)
        values = {}
        try:
            with open(os.path.join(folder, 'version.py'), encoding='utf-8') as file:
                exec(file.read(), values)
        except Exception:
            pass
        tell('torch.version', values.get('__version__', 'unknown'))
        tell('torch.cuda', values.get('cuda') or '')
        tell('torch.hip', values.get('hip') or '')
        tell('torch.library', os.path.exists(os.path.join(folder, 'lib', 'libc10_cuda.so')))
tell('end', 1)
)";

using Answers = std::map<std::string, std::string>;

Answers answers_of(const std::string& output) {
    Answers answers;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t tab = line.find('\t');
        if (tab != std::string::npos) {
            answers[line.substr(0, tab)] = line.substr(tab + 1);
        }
    }
    return answers;
}

void look_at_python(const Answers& answers, Findings* all) {
    constexpr const char* kTopic = "python";
    const auto get = [&answers](const char* key) {
        const auto found = answers.find(key);
        return found == answers.end() ? std::string() : found->second;
    };
    const std::string version = get("version");
    const std::string about =
        fmt::format("{} {}{}, {}",
                    get("implementation") == "cpython" ? "Python" : own(get("implementation")),
                    own(version.substr(0, version.find(' '))),
                    get("conda") == "True"     ? " of a conda environment"
                    : get("virtual") == "True" ? " of a virtual environment"
                                               : "",
                    own(get("executable")));
    const char* unknown = preload::why_python_is_unknown(version.c_str());
    if (get("bits") != "64") {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    about + ": a 32-bit program, which the recorder cannot be loaded into.",
                    "Use a 64-bit interpreter.");
        return;
    }
    if (get("recorder") == "False") {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    about + ": the recorder was not loaded into it (LD_PRELOAD has no effect).",
                    "Set-user-id programs, other C libraries than glibc, and security modules "
                    "prevent it. Use another interpreter.");
        return;
    }
    if (unknown != nullptr || get("implementation") != "cpython") {
        const bool free_threaded = version.find("free-threading") != std::string::npos;
        add_finding(all,
                    State::kNote,
                    kTopic,
                    fmt::format("{}: {}. Memory and native stacks are recorded. Python stacks are "
                                "not, so reports name no lines of Python files.",
                                about,
                                free_threaded ? "a free-threaded build, which the recorder does "
                                                "not know"
                                              : "an interpreter that the recorder does not know"),
                    "For Python lines use CPython 3.8 to 3.14 with the GIL.");
        return;
    }
    add_finding(
        all, State::kOk, kTopic, about + ": memory is recorded with Python and native stacks.");
}

// Returns the x of "2.x..."; -1 for other releases.
int torch_minor(const std::string& version) {
    return version.starts_with("2.") ? atoi(version.c_str() + 2) : -1;
}

void look_at_torch(const Answers& answers, Findings* all) {
    constexpr const char* kTopic = "pytorch";
    const auto get = [&answers](const char* key) {
        const auto found = answers.find(key);
        return found == answers.end() ? std::string() : found->second;
    };
    if (!answers.contains("module.torch")) {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    "This interpreter has no PyTorch. Calls of other programs and libraries to the "
                    "driver are recorded; blocks of their own pools only for the frameworks of "
                    "docs/frameworks.",
                    "To check another interpreter: fragtrace doctor -- PATH/TO/python.");
    } else if (const std::string version = get("torch.version"); !get("torch.hip").empty()) {
        add_finding(
            all,
            State::kProblem,
            kTopic,
            fmt::format("PyTorch {} is built for ROCm. fragtrace records CUDA.", own(version)),
            "Use a CUDA build.");
    } else if (get("torch.cuda").empty() || get("torch.library") != "True") {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    fmt::format("PyTorch {} is built without CUDA. It uses no card, so nothing "
                                "will be recorded.",
                                own(version)),
                    "Install a CUDA build of PyTorch.");
    } else {
        const int minor = torch_minor(version);
        const std::string about =
            fmt::format("PyTorch {} for CUDA {}", own(version), own(get("torch.cuda")));
        if (minor < kFirstTorchMinor) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        about + ": not tested. Releases 2.0 to 2.15 are.",
                        "See docs/compatibility.md for what older releases record.");
        } else if (minor > kLastTorchMinor) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        about +
                            ": newer than the tested releases (2.0 to 2.15). Blocks are "
                            "recorded if the allocator's layout is as expected; the trace "
                            "says so. The replay follows the rules of 2.15.",
                        "Look at the fidelity in the report: 100 % means that the rules hold.");
        } else {
            add_finding(all,
                        State::kOk,
                        kTopic,
                        about + ": its blocks, their stacks and out-of-memories are recorded.");
        }
    }
    std::string others;
    for (const char* name : {"tensorflow", "jax", "cupy", "rmm"}) {
        if (answers.contains(std::string("module.") + name)) {
            others += (others.empty() ? "" : ", ") + std::string(name);
        }
    }
    if (!others.empty()) {
        add_finding(all,
                    State::kNote,
                    "frameworks",
                    fmt::format("Also installed: {}. Their calls to the driver are recorded, and "
                                "the blocks of their pools as docs/frameworks says.",
                                others));
    }
}

// ---- programs that are not Python
// -----------------------------------------------------------------

// The beginning of a file, or all of a small one.
std::string read_file(const std::string& path, std::size_t most_bytes) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(most_bytes, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(most_bytes));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    return bytes;
}

// What the headers of a program say. All offsets come from the file and are checked.
class Program64 {
  public:
    explicit Program64(std::string bytes) : bytes_(std::move(bytes)) {
        is_elf_ = bytes_.compare(0, SELFMAG, ELFMAG) == 0;
        is_64_ = is_elf_ && read(0, &header_) && header_.e_ident[EI_CLASS] == ELFCLASS64;
    }

    [[nodiscard]] bool is_elf() const { return is_elf_; }

    [[nodiscard]] bool is_for_this_machine() const {
#if defined(__x86_64__)
        return is_64_ && header_.e_machine == EM_X86_64;
#elif defined(__aarch64__)
        return is_64_ && header_.e_machine == EM_AARCH64;
#else
        return is_64_;
#endif
    }

    // Returns the path of the dynamic linker; empty: statically linked.
    [[nodiscard]] std::string linker() const {
        for (unsigned i = 0; i < header_.e_phnum; ++i) {
            Elf64_Phdr segment = {};
            if (read(header_.e_phoff + i * sizeof segment, &segment) &&
                segment.p_type == PT_INTERP) {
                const std::string_view text = piece(segment.p_offset, segment.p_filesz);
                return std::string(text.substr(0, text.find('\0')));
            }
        }
        return "";
    }

    [[nodiscard]] bool contains(std::string_view text) const {
        return bytes_.find(text) != std::string::npos;
    }

  private:
    template <typename T>
    bool read(std::uint64_t offset, T* value) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof *value) {
            return false;
        }
        memcpy(value, bytes_.data() + offset, sizeof *value);
        return true;
    }

    [[nodiscard]] std::string_view piece(std::uint64_t offset, std::uint64_t size) const {
        return offset > bytes_.size() ? std::string_view()
                                      : std::string_view(bytes_).substr(offset, size);
    }

    std::string bytes_;
    Elf64_Ehdr header_ = {};
    bool is_elf_ = false;
    bool is_64_ = false;
};

void look_at_executable(const std::string& path, bool has_card, Findings* all) {
    constexpr const char* kTopic = "program";
    constexpr std::size_t kMost_bytes = std::size_t{512} << 20;
    const std::string name = own(path);
    struct stat status = {};
    if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    name + " is a set-user-id program. The loader ignores LD_PRELOAD for it.",
                    "Run a copy without these permissions.");
        return;
    }
    const Program64 program(read_file(path, kMost_bytes));
    if (!program.is_elf()) {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    name + " is a script. The programs that it starts are recorded.",
                    "To check an interpreter: fragtrace doctor -- PATH/TO/python.");
        return;
    }
    if (!program.is_for_this_machine()) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    name +
                        " is built for another processor or for 32 bits, or is damaged. The "
                        "recorder cannot be loaded into it.");
        return;
    }
    const std::string linker = program.linker();
    if (linker.empty()) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    name +
                        " is linked statically. The recorder cannot be loaded into it. "
                        "Programs that it starts are recorded.",
                    "Link it dynamically (without -static).");
        return;
    }
    if (linker.find("ld-musl") != std::string::npos) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    name + " uses the C library musl. The recorder needs glibc.");
        return;
    }
    // nvcc puts both names into each program with kernels. A static runtime opens the driver by
    // its name; a shared one is named as a library that the program needs.
    const bool has_kernels = program.contains(".nv_fatbin");
    if (has_kernels && !program.contains("libcudart.so") && program.contains("libcuda.so.1")) {
        add_finding(all,
                    has_card ? State::kOk : State::kNote,
                    kTopic,
                    name +
                        " has CUDA's runtime linked into it. On a card its calls to the driver "
                        "are recorded. On the virtual GPU it gets a CUDA error.",
                    has_card ? "" : "For the virtual GPU build it with nvcc -cudart shared.");
        return;
    }
    add_finding(all,
                State::kOk,
                kTopic,
                name + " can be recorded: its calls to the CUDA driver, with native stacks.");
}

// Returns the interpreter of a script's first line, or "".
std::string interpreter_of(const std::string& path) {
    std::string first = read_file(path, 4096);
    first = first.substr(0, first.find('\n'));
    if (!first.starts_with("#!")) {
        return "";
    }
    std::istringstream words(first.substr(2));
    std::string word;
    words >> word;
    if (fs::path(word).filename() == "env") {
        while (words >> word && word.starts_with('-')) {
        }
    }
    return word;
}

bool is_python(const std::string& path) {
    const std::string name = fs::path(path).filename();
    return name.starts_with("python") || name.starts_with("pypy");
}

void ask_python(const Installation& installation, const std::string& interpreter, Findings* all) {
    std::vector<std::pair<std::string, std::string>> environment = {{"FRAGTRACE_OFF", "1"}};
    try {
        const Libraries libraries = choose_libraries(installation, true, false);
        const char* users = getenv("LD_PRELOAD");
        environment.emplace_back("LD_PRELOAD",
                                 preload_list(libraries.preload, users == nullptr ? "" : users));
    } catch (const Refusal&) {  // another line says it
    }
    const Probe probe =
        probe_command({interpreter, "-B", "-c", kQuestions}, environment, kInterpreterLimit_s);
    const Answers answers = answers_of(probe.output);
    if (!probe.succeeded() || !answers.contains("end")) {
        const std::size_t last = probe.errors.rfind('\n', probe.errors.size() - 2);
        const std::string said =
            probe.errors.substr(last == std::string::npos || probe.errors.empty() ? 0 : last + 1);
        add_finding(
            all,
            State::kProblem,
            "python",
            fmt::format("{} does not run{}",
                        own(interpreter),
                        !probe.in_time ? fmt::format(": no answer for {} s.", kInterpreterLimit_s)
                        : said.empty() ? "."
                                       : ": " + own(said.substr(0, said.find('\n')))),
            "To check another interpreter: fragtrace doctor -- PATH/TO/python.");
        return;
    }
    look_at_python(answers, all);
    look_at_torch(answers, all);
}

}  // namespace

void look_at_target(const Installation& installation,
                    const std::vector<std::string>& command,
                    bool has_card,
                    Findings* all) {
    if (command.empty()) {
        for (const char* name : {"python", "python3"}) {
            try {
                find_command(name);
            } catch (const Refusal&) {
                continue;
            }
            ask_python(installation, name, all);
            return;
        }
        add_finding(all,
                    State::kNote,
                    "python",
                    "There is no python or python3 in $PATH.",
                    "To check a program: fragtrace doctor -- PROGRAM.");
        return;
    }
    std::string path;
    try {
        path = find_command(command[0]);
    } catch (const Refusal& refusal) {
        add_finding(all, State::kProblem, "program", own(refusal.text) + ".");
        return;
    }
    const std::string interpreter = interpreter_of(path);
    if (is_python(path)) {
        ask_python(installation, path, all);
    } else if (is_python(interpreter)) {
        ask_python(installation, interpreter, all);
    } else {
        look_at_executable(path, has_card, all);
    }
}

}  // namespace fragtrace::launcher
