#include "launcher/machine.h"

#include <fragtrace/printable.h>

#include "launcher/option_texts.h"
#include "launcher/own_text.h"
#include "launcher/probe.h"
#include "launcher/refusal.h"
#include "launcher/sizes_text.h"
#include "launcher/traces.h"
#include "recorder/file_systems.h"
#include "recorder/options.h"
#include "recorder/ring.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kDriverLimit_s = 20;

std::string variable(const char* name) {
    const char* value = getenv(name);
    return value == nullptr ? "" : value;
}

// ---- the driver, in a child: its libraries may crash or hang
// --------------------------------------

template <typename Function>
bool find(void* library, const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, name));
    return *function != nullptr;
}

struct NvmlMemory {
    unsigned long long total, free, used;
};

// One line per card: "card NAME|TOTAL|FREE|MIG".
void print_cards(int output) {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)() = nullptr;
    int (*driver)(char*, unsigned) = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*by_index)(unsigned, void**) = nullptr;
    int (*name)(void*, char*, unsigned) = nullptr;
    int (*memory)(void*, NvmlMemory*) = nullptr;
    int (*mig)(void*, unsigned*, unsigned*) = nullptr;
    unsigned cards = 0;
    if (library == nullptr || !find(library, "nvmlInit_v2", &init) ||
        !find(library, "nvmlDeviceGetCount_v2", &count) ||
        !find(library, "nvmlDeviceGetHandleByIndex_v2", &by_index) || init() != 0 ||
        count(&cards) != 0) {
        dprintf(output, "nvml no\n");
        return;
    }
    dprintf(output, "nvml yes\n");
    char text[96] = "";
    if (find(library, "nvmlSystemGetDriverVersion", &driver) && driver(text, sizeof text) == 0) {
        dprintf(output, "release %s\n", text);
    }
    for (unsigned i = 0; i < cards; ++i) {
        void* card = nullptr;
        NvmlMemory bytes = {};
        unsigned current = 0;
        unsigned pending = 0;
        if (by_index(i, &card) != 0) {
            continue;
        }
        snprintf(text, sizeof text, "a card");
        if (find(library, "nvmlDeviceGetName", &name)) {
            name(card, text, sizeof text);
        }
        if (find(library, "nvmlDeviceGetMemoryInfo", &memory)) {
            memory(card, &bytes);
        }
        if (find(library, "nvmlDeviceGetMigMode", &mig)) {
            mig(card, &current, &pending);
        }
        dprintf(output, "card %s|%llu|%llu|%u\n", text, bytes.total, bytes.free, current);
    }
}

void print_driver(int output) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        dprintf(output, "missing %s\n", dlerror());
        return;
    }
    int (*version)(int*) = nullptr;
    int (*init)(unsigned) = nullptr;
    int (*count)(int*) = nullptr;
    int number = 0;
    if (!find(library, "cuInit", &init) || !find(library, "cuDriverGetVersion", &version) ||
        !find(library, "cuDeviceGetCount", &count)) {
        dprintf(output, "missing libcuda.so.1 is not a CUDA driver\n");
        return;
    }
    version(&number);
    dprintf(output, "driver %d\n", number);
    print_cards(output);
    const int error = init(0);  // makes no context
    int usable = 0;
    if (error != 0 || count(&usable) != 0) {
        usable = 0;
    }
    dprintf(output, "usable %d %d\n", usable, error);
}

struct Driver {
    bool asked = false;  // the child has answered completely
    std::string missing;
    int version = 0;
    std::string release;
    bool nvml = false;
    std::vector<std::string> cards;
    int usable = 0;
    int error = 0;
};

std::string card_text(const std::string& line) {
    std::istringstream fields(line);
    std::string name;
    std::string total;
    std::string free;
    std::string mig;
    std::getline(fields, name, '|');
    std::getline(fields, total, '|');
    std::getline(fields, free, '|');
    std::getline(fields, mig, '|');
    const std::uint64_t total_bytes = strtoull(total.c_str(), nullptr, 10);
    return fmt::format("{}{}{}",
                       printable(name),
                       total_bytes == 0
                           ? ""
                           : fmt::format(" ({}, {} free)",
                                         size_text(total_bytes),
                                         size_text(strtoull(free.c_str(), nullptr, 10))),
                       mig == "1" ? ", divided by MIG" : "");
}

Driver ask_driver() {
    Driver driver;
    const Probe probe = probe_function(print_driver, kDriverLimit_s);
    std::istringstream lines(probe.output);
    for (std::string line; std::getline(lines, line);) {
        const std::string word = line.substr(0, line.find(' '));
        const std::string rest = line.substr(std::min(line.size(), word.size() + 1));
        if (word == "missing") {
            driver.missing = own(rest);
            driver.asked = true;
        } else if (word == "driver") {
            driver.version = atoi(rest.c_str());
        } else if (word == "release") {
            driver.release = own(rest);
        } else if (word == "nvml") {
            driver.nvml = rest == "yes";
        } else if (word == "card") {
            driver.cards.push_back(card_text(rest));
        } else if (word == "usable") {
            std::istringstream(rest) >> driver.usable >> driver.error;
            driver.asked = true;
        }
    }
    return driver;
}

// ---- storage
// --------------------------------------------------------------------------------------

// "ext4", "NFS" and so on, for a sentence. Empty if nobody has to know its name.
std::string_view notable_file_system(const std::string& folder) {
    struct statfs place = {};
    if (statfs(folder.c_str(), &place) != 0) {
        return "";
    }
    const preload::FileSystem* known = preload::known_file_system(place);
    return known == nullptr ? "" : known->name;
}

std::uint64_t free_bytes(const std::string& folder) {
    struct statvfs place = {};
    return statvfs(folder.c_str(), &place) != 0
               ? 0
               : std::uint64_t{place.f_bavail} * std::uint64_t{place.f_frsize};
}

bool has_virtual_gpu(const Installation& installation) {
    try {
        return !choose_libraries(installation, false, true).preload.empty();
    } catch (const Refusal&) {
        return false;
    }
}

}  // namespace

std::string space_warning(const std::string& folder, const std::string& keep_free) {
    preload::Options options;
    preload::read_options(&options);
    if (!keep_free.empty()) {
        preload::set_option(&options, "FRAGTRACE_KEEP_FREE", keep_free.c_str());
    }
    struct statvfs place = {};
    if (statvfs(folder.c_str(), &place) != 0 || place.f_blocks == 0) {
        return "";
    }
    const std::uint64_t least_bytes =
        preload::kept_free_bytes(place, options.keep_free_percent, options.keep_free_bytes);
    const std::uint64_t free_bytes = std::uint64_t{place.f_bavail} * place.f_frsize;
    if (free_bytes >= least_bytes) {
        return "";
    }
    return "little will be recorded: " + printable(folder) + " has " +
           std::to_string(free_bytes >> 20) + " MiB free, and " +
           std::to_string(least_bytes >> 20) +
           " MiB are kept free there; choose another folder (-o), or --keep-free";
}

bool lacks_driver() {
    constexpr int kLimit_s = 2;
    const Probe probe = probe_function(
        [](int output) {
            if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) {
                dprintf(output, "missing");
            }
        },
        kLimit_s);
    return probe.output == "missing";
}

void look_at_driver(const Installation& installation, bool* has_card, Findings* all) {
    constexpr const char* kTopic = "driver";
    const Driver driver = ask_driver();
    const bool virtual_gpu = has_virtual_gpu(installation);
    const std::string without =
        virtual_gpu ? "Record on the virtual GPU: fragtrace run --virtual-gpu 24GiB -- COMMAND."
                    : "The virtual GPU is not installed either. Install it, or NVIDIA's driver.";
    const State state = virtual_gpu ? State::kNote : State::kProblem;
    *has_card = driver.usable > 0;
    if (!driver.asked) {
        add_finding(
            all,
            State::kProblem,
            kTopic,
            fmt::format("NVIDIA's driver crashed, or gave no answer for {} s.", kDriverLimit_s),
            "Try nvidia-smi. " + without);
        return;
    }
    if (!driver.missing.empty()) {
        add_finding(all,
                    state,
                    kTopic,
                    "No NVIDIA driver: libcuda.so.1 cannot be loaded (" + driver.missing + ").",
                    without + " In a container, start it with --gpus all.");
        return;
    }
    const bool is_virtual = driver.release == "fragtrace-virtual";
    const std::string about =
        fmt::format("{} {}for CUDA {}.{}",
                    is_virtual ? "The virtual GPU of fragtrace" : "NVIDIA's driver",
                    is_virtual || driver.release.empty() ? "" : driver.release + " ",
                    driver.version / 1000,
                    driver.version % 1000 / 10);
    if (*has_card) {
        std::string text = fmt::format(
            "{}, {} usable card{}", about, driver.usable, driver.usable == 1 ? "" : "s");
        for (std::size_t i = 0; i < driver.cards.size(); ++i) {
            text += (i == 0 ? ": " : ", ") + driver.cards[i];
        }
        add_finding(all, State::kOk, kTopic, text + ".");
        if (!driver.nvml) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        "NVML (libnvidia-ml.so.1) does not answer. Memory of other processes will "
                        "not be known by process.",
                        "In a container, add the capability utility to "
                        "NVIDIA_DRIVER_CAPABILITIES.");
        }
        return;
    }
    const char* visible = getenv("CUDA_VISIBLE_DEVICES");
    add_finding(
        all,
        state,
        kTopic,
        fmt::format("{}, but no usable card (cuInit: error {}).", about, driver.error),
        (visible != nullptr ? fmt::format("CUDA_VISIBLE_DEVICES is '{}': check it. ", own(visible))
                            : std::string("Try nvidia-smi. ")) +
            without);
}

void look_at_installation(const Installation& installation, Findings* all) {
    constexpr const char* kTopic = "fragtrace";
    const std::size_t before = all->size();
    try {
        choose_libraries(installation, true, false);
    } catch (const Refusal& refusal) {
        add_finding(
            all, State::kProblem, kTopic, "The recorder cannot be loaded: " + own(refusal.text));
        return;
    }
    if (access(installation.analyzer().c_str(), X_OK) != 0) {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    "fraganalyze is missing: " + own(installation.analyzer().native()) +
                        ". Traces are recorded, but not explained.",
                    "Install the analyzer, or copy the traces to a machine that has it.");
    }
    for (const OptionText& row : kOptionTexts) {
        const std::string value = variable(row.variable);
        if (!value.empty() && !preload::option_accepts(row.variable, value.c_str())) {
            add_finding(
                all,
                State::kProblem,
                "settings",
                fmt::format("{} is '{}', which is no valid value.", row.variable, own(value)),
                fmt::format("Give {}.", row.allowed));
        }
    }
    if (preload::option_off()) {
        add_finding(all,
                    State::kProblem,
                    "settings",
                    "FRAGTRACE_OFF switches recording off.",
                    "Unset FRAGTRACE_OFF.");
    }
    if (all->size() == before) {
        add_finding(
            all,
            State::kOk,
            kTopic,
            fmt::format("fragtrace {}: recorder and analyzer are there.", FRAGTRACE_VERSION));
    }
}

void look_at_trace_folder(Findings* all) {
    constexpr const char* kTopic = "traces";
    std::string folder = variable("FRAGTRACE_OUTPUT");
    // Only the part without patterns exists before a run.
    folder = split_output(folder.empty() ? "." : folder).folder;
    std::error_code failed;
    // A folder that is missing is created: its nearest existing parent decides.
    fs::path there = (fs::absolute(folder, failed) / "").lexically_normal().parent_path();
    const std::string name = own(there.native());
    while (there.has_relative_path() && !fs::exists(there, failed)) {
        there = there.parent_path();
    }
    if (!fs::is_directory(there, failed) || access(there.c_str(), W_OK | X_OK) != 0) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    "Traces cannot be written into " + name + ".",
                    "Name another folder with -o or FRAGTRACE_OUTPUT.");
        return;
    }
    if (std::string warning = space_warning(there, ""); !warning.empty()) {
        const std::string folder_there = printable(there.native());
        warning.replace(warning.find(folder_there), folder_there.size(), own(folder_there));
        add_finding(all, State::kProblem, kTopic, warning + ".");
        return;
    }
    const std::string_view kind = notable_file_system(there);
    const std::string text = fmt::format("Traces go to {}{} ({} free).",
                                         name,
                                         kind.empty() ? "" : fmt::format(", on {}", kind),
                                         size_text(free_bytes(there)));
    if (kind == "tmpfs") {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    text + " A trace there takes main memory and is lost at a restart.",
                    "Name a folder on a disk with -o.");
    } else if (kind == "overlayfs") {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    text + " Traces there are lost together with the container.",
                    "Name a mounted volume with -o.");
    } else {
        add_finding(all, State::kOk, kTopic, text);
    }
}

// Makes a ring exactly as the recorder does, and removes it.
void look_at_ring(Findings* all) {
    constexpr const char* kTopic = "ring";
    preload::Options options;
    preload::read_options(&options);
    preload::Ring ring = {};
    const std::uint64_t session[2] = {0xd0c7, 0xd0c7};
    if (!ring.create(session, options.ring_events, options.ring_directory, options.output, true)) {
        add_finding(all,
                    State::kProblem,
                    kTopic,
                    "There is no memory for the ring, so nothing can be recorded.",
                    "Raise the limit for virtual memory (ulimit -v).");
        return;
    }
    const std::string path = ring.path();
    ring.remove_file();
    ring.abandon();
    const std::string folder = path.substr(0, path.rfind('/'));
    if (path.empty()) {
        add_finding(
            all,
            State::kNote,
            kTopic,
            "No folder suits the ring, which holds the last events. It will be in the program's "
            "own "
            "memory: if the program is killed, its last events are lost.",
            "Name a folder on a local disk in FRAGTRACE_RING_DIRECTORY, or give the container more "
            "shared memory (docker run --shm-size 1g).");
    } else if (folder == "/dev/shm" || options.ring_directory[0] != '\0') {
        add_finding(all,
                    State::kOk,
                    kTopic,
                    fmt::format("The ring goes to {} ({} free). After a kill its events are read "
                                "from there.",
                                own(folder),
                                size_text(free_bytes(folder))));
    } else {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    fmt::format("The ring goes to {}, because /dev/shm is missing, has too little "
                                "room ({} free), or has too many rings of killed programs.",
                                own(folder),
                                size_text(free_bytes("/dev/shm"))),
                    "Give /dev/shm more room (docker run --shm-size 1g), or remove old rings "
                    "(fragtrace clean).");
    }
}

void look_at_limits(Findings* all) {
    constexpr const char* kTopic = "limits";
    constexpr rlim_t kLeastTrace_bytes = rlim_t{64} << 20;
    constexpr rlim_t kLeastMemory_bytes = rlim_t{64} << 30;
    constexpr rlim_t kLeastFiles = 64;
    const std::size_t before = all->size();
    rlimit limit = {};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        add_finding(all,
                    limit.rlim_cur < kLeastTrace_bytes ? State::kProblem : State::kNote,
                    kTopic,
                    fmt::format("Files may have at most {} (ulimit -f). A trace ends there.",
                                size_text(limit.rlim_cur)),
                    "Raise it: ulimit -f unlimited.");
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        add_finding(all,
                    limit.rlim_cur < kLeastMemory_bytes ? State::kProblem : State::kNote,
                    kTopic,
                    fmt::format("A process may have at most {} of addresses (ulimit -v). CUDA "
                                "reserves more than the memory of all cards.",
                                size_text(limit.rlim_cur)),
                    "Raise it: ulimit -v unlimited.");
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kLeastFiles) {
        add_finding(all,
                    State::kNote,
                    kTopic,
                    fmt::format("A process may have {} files open (ulimit -n). The recorder needs "
                                "a few of them.",
                                limit.rlim_cur),
                    "Raise it: ulimit -n 1024.");
    }
    if (all->size() == before) {
        add_finding(all, State::kOk, kTopic, "No limit stops a recording.");
    }
}

void look_at_container(Findings* all) {
    constexpr const char* kTopic = "container";
    std::error_code failed;
    std::string kind = variable("container");
    if (kind.empty()) {
        kind = fs::exists("/.dockerenv", failed)              ? "Docker"
               : fs::exists("/run/.containerenv", failed)     ? "Podman"
               : !variable("APPTAINER_CONTAINER").empty()     ? "Apptainer"
               : !variable("SINGULARITY_CONTAINER").empty()   ? "Singularity"
               : !variable("KUBERNETES_SERVICE_HOST").empty() ? "Kubernetes"
                                                              : "";
    }
    if (kind.empty()) {
        return;
    }
    add_finding(all,
                State::kNote,
                kTopic,
                fmt::format("This is a container ({}). What is recorded inside is complete, and "
                            "process ids are those inside. Memory of processes outside may be "
                            "known only as a sum.",
                            own(kind)),
                "After a kill, analyse the trace in the same container: the ring is there.");
}

void look_at_other_tools(Findings* all) {
    constexpr const char* kTopic = "preloads";
    std::string list = variable("LD_PRELOAD");
    std::ifstream file("/etc/ld.so.preload");
    list += ' ' + std::string(std::istreambuf_iterator<char>(file), {});
    std::replace(list.begin(), list.end(), ':', ' ');
    std::istringstream words(list);
    for (std::string library; words >> library;) {
        // The loader would have loaded it into this program, too.
        void* loaded = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (loaded == nullptr) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        fmt::format("{} cannot be loaded. The loader skips it in every program, "
                                    "and says so on standard error.",
                                    own(library)),
                        "Remove it from LD_PRELOAD, or from /etc/ld.so.preload.");
            continue;
        }
        dlclose(loaded);
        if (library.find("libfragtrace") == std::string::npos) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        fmt::format("{} is loaded into programs, too. What it allocates on a card "
                                    "is recorded as the program's.",
                                    own(library)),
                        "If a program misbehaves under fragtrace, try without this library.");
        } else {
            add_finding(
                all,
                State::kNote,
                kTopic,
                fmt::format("{} is loaded into all programs from here already.", own(library)),
                "Unset LD_PRELOAD, unless you record without the launcher.");
        }
    }
    for (const char* name : {"CUDA_INJECTION64_PATH", "LD_AUDIT"}) {
        if (const std::string value = variable(name); !value.empty()) {
            add_finding(all,
                        State::kNote,
                        kTopic,
                        fmt::format("{} names another tool: {}.", name, own(value)),
                        "If a program misbehaves under fragtrace, try without this tool.");
        }
    }
}

}  // namespace fragtrace::launcher
