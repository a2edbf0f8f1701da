#include "launcher/libraries.h"

#include <fragtrace/printable.h>

#include "launcher/refusal.h"

#include <fstream>
#include <sys/auxv.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;

fs::path virtual_gpu_folder(const fs::path& libraries) {
    return libraries / "fragtrace" / "vgpu";
}

bool holds_libraries(const fs::path& folder) {
    std::error_code ignored;
    return fs::exists(folder / "libfragtrace.so", ignored) ||
           fs::exists(virtual_gpu_folder(folder) / "preload.list", ignored);
}

// The dynamic linker would print an error in every process for a missing path, and would read a
// path with a separator as two.
void add_preload(const fs::path& library, std::vector<std::string>* list) {
    const std::string& path = library.native();
    if (path.find_first_of(" \t\n:;") != std::string::npos) {
        refuse_usage('\'' + printable(path) +
                     "': LD_PRELOAD cannot name a path with a space, a colon or a semicolon; "
                     "install fragtrace elsewhere");
    }
    if (access(path.c_str(), R_OK) != 0) {
        refuse_usage(path + " is missing: build or install fragtrace first");
    }
    list->push_back(path);
}

// The runtime of the address sanitizer must be first. Behind torch_memory_saver, the recorder sees
// the calls that its cudaMalloc makes.
bool stays_first(std::string_view library) {
    const std::string_view name = library.substr(library.rfind('/') + 1);
    return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan") ||
           name.starts_with("torch_memory_saver");
}

void add_item(std::string* list, std::string_view item) {
    *list += (list->empty() ? "" : ":") + std::string(item);
}

}  // namespace

fs::path Installation::library_folder() const {
    std::error_code failed;
    for (const char* name : {"lib", "lib64"}) {
        if (holds_libraries(prefix / name)) {
            return prefix / name;
        }
    }
    for (const auto& entry : fs::directory_iterator(prefix / "lib", failed)) {
        if (entry.path().native().ends_with("-linux-gnu") && holds_libraries(entry.path())) {
            return entry.path();
        }
    }
    return prefix / "lib";
}

Installation find_installation() {
    std::error_code failed;
    fs::path self = fs::read_symlink("/proc/self/exe", failed);
    if (failed) {  // /proc is not mounted
        const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
        self = fs::canonical(name == nullptr ? "" : name, failed);
    }
    return {self.parent_path().parent_path()};
}

std::string find_analyzer(const Installation& installation) {
    std::string analyzer = installation.analyzer().native();
    if (access(analyzer.c_str(), X_OK) != 0) {
        throw Refusal{kNotFound,
                      "fraganalyze is missing: " + analyzer + ". Build or install it first"};
    }
    return analyzer;
}

Libraries choose_libraries(const Installation& installation, bool record, bool virtual_gpu) {
    Libraries libraries;
    const fs::path folder = installation.library_folder();
    if (record) {
        add_preload(folder / "libfragtrace.so", &libraries.preload);
    }
    if (virtual_gpu) {
        const fs::path replacements = virtual_gpu_folder(folder);
        const fs::path list = replacements / "preload.list";
        std::ifstream names(list);
        if (!names) {
            refuse_usage(list.native() + " is missing: build or install fragtrace first");
        }
        // Preloaded after the recorder: otherwise the program would call the virtual runtime
        // directly.
        for (std::string name; std::getline(names, name);) {
            if (!name.empty()) {
                add_preload(replacements / name, &libraries.preload);
            }
        }
        libraries.search_folder = replacements;
    }
    return libraries;
}

std::string preload_list(const std::vector<std::string>& ours, std::string_view users) {
    std::string list;
    std::string others;
    while (!users.empty()) {
        const std::string_view item = users.substr(0, users.find_first_of(" :"));
        users.remove_prefix(item.size() == users.size() ? item.size() : item.size() + 1);
        if (!item.empty()) {
            add_item(stays_first(item) ? &list : &others, item);
        }
    }
    for (const std::string& library : ours) {
        add_item(&list, library);
    }
    if (!others.empty()) {
        add_item(&list, others);
    }
    return list;
}

std::string sanitizer_options(std::string_view users) {
    std::string options = "verify_asan_link_order=0";
    if (!users.empty()) {
        add_item(&options, users);
    }
    return options;
}

}  // namespace fragtrace::launcher
