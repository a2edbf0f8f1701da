#include "analyzer/trace/code_files.h"

#include "analyzer/support/text.h"
#include "analyzer/trace/base_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::string with_slashes(std::string_view path) {
    std::string text(path);
    std::replace(text.begin(), text.end(), '\\', '/');
    return text;
}

// Windows installations have PREFIX\Lib, where PREFIX names Python, a distribution or an
// environment.
bool is_windows_standard_library(std::string_view path) {
    if (path.size() < 3 || path[1] != ':' || path[2] != '/') {
        return false;
    }
    std::string lower(path);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char character) {
        return static_cast<char>(std::tolower(character));
    });
    const std::size_t folder = lower.find("/lib/");
    constexpr std::array<std::string_view, 4> kPrefixes = {"/python3", "conda", "mamba", "/envs/"};
    return folder != std::string::npos &&
           std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
               return contains(std::string_view(lower).substr(0, folder), prefix);
           });
}

bool all_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

std::string_view without_ending(std::string_view name) {
    return name.ends_with(".py") ? name.substr(0, name.size() - 3) : name;
}

constexpr std::string_view kLettersAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789_";

// torch.compile names a file by a hash of its text. The file's folder is named by two characters of
// that hash, wherever TORCHINDUCTOR_CACHE_DIR is.
bool is_inductor_file(std::string_view path) {
    const std::string_view name = without_ending(base_name(path));
    constexpr std::size_t kHashSize = 52;
    if (name.size() != kHashSize || name[0] != 'c' ||
        !all_of(name, "abcdefghijklmnopqrstuvwxyz234567")) {
        return false;
    }
    const std::string_view folder = path.substr(0, path.size() - base_name(path).size());
    return folder.ends_with(fmt::format("/{}/", name.substr(1, 2)));
}

// Whether the name has the form that Python's tempfile chooses.
bool is_temporary_file(std::string_view path) {
    const std::string_view name = without_ending(base_name(path));
    return name.size() == 11 && name.starts_with("tmp") && all_of(name, kLettersAndDigits);
}

// PyTorch Geometric writes the message passing of a layer to MODULE_LAYER_propagate_RANDOM.py.
// MODULE belongs to PyTorch Geometric or to the program.
bool is_message_passing_file(std::string_view path) {
    constexpr std::size_t kRandom = 9;  // underscore and 8 characters as in tempfile
    const std::string_view name = without_ending(base_name(path));
    if (name.size() <= kRandom || name[name.size() - kRandom] != '_' ||
        !all_of(name.substr(name.size() - kRandom), kLettersAndDigits)) {
        return false;
    }
    const std::string_view module = name.substr(0, name.size() - kRandom);
    return module.starts_with("torch_geometric.") || module.ends_with("_propagate") ||
           module.ends_with("_edge_updater");
}

// The first characters of a file name, and the generator of such code.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kGeneratedNames = {{
    {"<eval_with_key>", "torch.fx"},
    {"<torch_package_", "torch.package"},
    {"<attrs generated", "attrs"},
    {"<lambdifygenerated", "sympy"},
    {"<decorator-gen", "a decorator"},
    {"<string>", "exec"},
}};

// A part of a path, and the generator of such code. The first match counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kGeneratedFolders = {{
    {"/triton/", "triton"},
    {"/.triton/", "triton"},
    {"/torchinductor_", "torch.compile"},
    {"/torch_compile_debug/", "torch.compile"},
}};

constexpr std::array<std::string_view, 4> kTypedNames = {
    "<stdin>", "<ipython-input", "<python-input", "<command-"};

// Returns the number of a notebook cell; empty if the file is not a cell. Kernels write each cell
// into a temporary folder.
std::string cell_of(std::string_view path) {
    constexpr std::string_view kKernel = "/ipykernel_";  // followed by the kernel's process id
    if (const std::size_t kernel = path.find(kKernel); kernel != std::string_view::npos) {
        const std::string_view rest = path.substr(kernel + kKernel.size());
        const std::size_t digits = rest.find_first_not_of("0123456789");
        if (digits != 0 && digits != std::string_view::npos && rest[digits] == '/') {
            return std::string(without_ending(base_name(path)));
        }
    }
    constexpr std::string_view kColab = "ipython-input-";
    const std::string_view name = base_name(path);
    return name.starts_with(kColab) ? std::string(without_ending(name.substr(kColab.size()))) : "";
}

std::string_view generator_of_path(std::string_view path) {
    if (!package_of(path).empty()) {
        return {};
    }
    for (const auto& [part, generator] : kGeneratedFolders) {
        const std::size_t at = path.find(part);
        // Triton writes generated code to a cache. Without "cache" in the path, the folder may be
        // the program's own.
        if (at != std::string_view::npos &&
            (generator != "triton" || contains(path, "cache") || contains(path, "torchinductor"))) {
            return generator;
        }
    }
    return is_inductor_file(path)          ? "torch.compile"
           : is_temporary_file(path)       ? "a temporary file"
           : is_message_passing_file(path) ? "torch_geometric"
                                           : "";
}

std::string_view last_two(std::string_view path) {
    const std::size_t last = path.find_last_of("/\\");
    if (last == std::string_view::npos || last == 0) {
        return path;
    }
    const std::size_t before = path.find_last_of("/\\", last - 1);
    return before == std::string_view::npos ? path : path.substr(before + 1);
}

}  // namespace

bool is_library_file(std::string_view file) {
    constexpr std::array<std::string_view, 15> kParts = {"/site-packages/",
                                                         "/dist-packages/",
                                                         "/lib/python3",
                                                         "/torch/nn/",
                                                         "/torch/optim/",
                                                         "/torch/utils/",
                                                         "/torch/autograd/",
                                                         "/torch/cuda/",
                                                         "/torch/distributed/",
                                                         "/torch/amp/",
                                                         "/torch/_",
                                                         "/torch/functional.py",
                                                         "/fragtrace/_pools.py",
                                                         "/fragtrace/cupy.py",
                                                         "/fragtrace/rmm.py"};
    const std::string path = with_slashes(file);
    return path.starts_with("<frozen ") || path.starts_with("<__array_function__") ||
           std::any_of(kParts.begin(),
                       kParts.end(),
                       [&path](std::string_view part) { return contains(path, part); }) ||
           is_windows_standard_library(path);
}

std::string_view generator_of(std::string_view file) {
    if (!file.starts_with('<')) {
        const std::string path = with_slashes(file);
        return cell_of(path).empty() ? generator_of_path(path) : "";
    }
    for (const auto& [begin, generator] : kGeneratedNames) {
        if (file.starts_with(begin)) {
            return generator;
        }
    }
    const bool typed =
        std::any_of(kTypedNames.begin(), kTypedNames.end(), [file](std::string_view begin) {
            return file.starts_with(begin);
        });
    return typed ? "" : "exec";
}

std::string_view package_of(std::string_view path) {
    const std::string normal = with_slashes(path);
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
        if (const std::size_t at = normal.find(folder); at != std::string::npos) {
            const std::string_view inside = path.substr(at + folder.size());
            return without_ending(inside.substr(0, inside.find_first_of("/\\")));
        }
    }
    return {};
}

std::string shown_file(std::string_view file) {
    const std::string path = with_slashes(file);
    if (const std::string cell = cell_of(path); !cell.empty()) {
        return "notebook cell " + cell;
    }
    const std::string_view generator = generator_of(file);
    if (generator.empty()) {
        return std::string(last_two(file));
    }
    // The first characters of a hash of the code. Equal code has the same hash in every run.
    constexpr std::size_t kHashShown = 6;
    return is_inductor_file(path)
               ? fmt::format("{} ({})", generator, base_name(path).substr(0, kHashShown))
               : std::string(generator);
}

bool is_native_source(std::string_view file) {
    constexpr std::array<std::string_view, 10> kEndings = {
        ".cpp", ".cc", ".c", ".cxx", ".cu", ".h", ".hpp", ".cuh", ".S", ".o"};
    return std::any_of(kEndings.begin(), kEndings.end(), [file](std::string_view ending) {
        return file.ends_with(ending);
    });
}

bool is_native_frame(std::string_view function, std::string_view file) {
    const std::string_view name = base_name(file);
    return file.empty() || file == "??" || function == "??" || contains(function, "::") ||
           contains(function, "(") || is_native_source(file) || name.ends_with(".so") ||
           contains(name, ".so.") ||
           (name.starts_with("python") && all_of(name.substr(6), "0123456789."));
}

}  // namespace fragtrace::analyzer
