// PyTorch's version and the settings of its allocator, as they are at its first use.
#include <fragtrace/pytorch_variables.h>

#include "frameworks/torch_state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

char g_version[64];  // "2.15.0+cu132"
char g_release[64];  // "2.15.0"

// Writes the path of torch/version.py, given the path of torch/lib/libc10_cuda.so. Returns false
// for a path of another form.
bool version_path(const char* library, char* path, size_t path_bytes) {
    constexpr char kBeside[] = "/version.py";
    const char* slash = strrchr(library, '/');
    size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - library);
    while (length > 0 && library[length - 1] != '/') {
        --length;
    }
    if (length <= 1 || length + sizeof kBeside > path_bytes) {
        return false;
    }
    memcpy(path, library, length - 1);
    memcpy(path + length - 1, kBeside, sizeof kBeside);
    return true;
}

// Finds the value in `__version__ = '...'`.
void parse_version(const char* text) {
    const char* line = strstr(text, "__version__ =");
    const char* quote = line == nullptr ? nullptr : strpbrk(line, "'\"");
    if (quote == nullptr) {
        return;
    }
    size_t length = strcspn(quote + 1, "'\"\n");
    if (length >= sizeof g_version) {
        return;
    }
    memcpy(g_version, quote + 1, length);
    length = strcspn(g_version, "+");
    memcpy(g_release, g_version, length);
}

void read_version() {
    char path[4096];
    char text[2048];
    if (g_torch.cuda == nullptr || !version_path(g_torch.cuda->l_name, path, sizeof path)) {
        return;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    const ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count > 0) {
        text[count] = '\0';
        parse_version(text);
    }
}

const char* settings() {
    for (const PytorchVariable& variable : kPytorchVariables) {
        const char* value = getenv(variable.name);
        if (value != nullptr && !torch_is_before(variable.since_minor)) {
            return value;
        }
    }
    return "";
}

}  // namespace

const char* torch_release() {
    if (g_version[0] == '\0') {
        read_version();
    }
    return g_release;
}

bool torch_is_before(int minor) {
    const char* release = torch_release();
    if (strncmp(release, "1.", 2) == 0) {
        return minor != 0;
    }
    return strncmp(release, "2.", 2) == 0 && atoi(release + 2) < minor;
}

void record_torch_version() {
    torch_release();
    record_fact("torch_version", g_version[0] == '\0' ? "unknown" : g_version);
    record_fact("allocator_conf", settings());
}

}  // namespace fragtrace::preload
