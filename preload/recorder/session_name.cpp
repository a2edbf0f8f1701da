#include "recorder/session.h"
#include "system/sys.h"

#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kLongestName = 64;

const char* base_of(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

bool ends_in_py(const char* text) {
    const size_t size = strlen(text);
    return size > 3 && strcmp(text + size - 3, ".py") == 0;
}

// Returns the script or module that an interpreter was started with; nullptr if unknown.
const char* script_of(char* arguments, size_t size) {
    const char* end = arguments + size;
    const char* argument = arguments + strlen(arguments) + 1;
    while (argument < end) {
        const char* next = argument + strlen(argument) + 1;
        if (strcmp(argument, "-c") == 0) {
            return nullptr;
        }
        if (strcmp(argument, "-m") == 0) {
            return next < end ? next : nullptr;
        }
        if (ends_in_py(argument)) {
            return base_of(argument);
        }
        // -W and -X take a value. Any other word is the program to run, whatever its name.
        const bool takes_value = strcmp(argument, "-W") == 0 || strcmp(argument, "-X") == 0;
        if (argument[0] != '-') {
            return base_of(argument);
        }
        argument = takes_value && next < end ? next + strlen(next) + 1 : next;
    }
    return nullptr;
}

}  // namespace

void program_name(char* name, uint32_t capacity) {
    static char executable[kMaxPathBytes];
    static char arguments[8192];
    const ssize_t size = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[size > 0 ? size : 0] = '\0';
    const char* chosen = base_of(executable);
    if (strncmp(chosen, "python", 6) == 0 || strncmp(chosen, "pypy", 4) == 0) {
        const long count = read_file("/proc/self/cmdline", arguments, sizeof arguments - 1);
        arguments[count > 0 ? count : 0] = '\0';
        const char* script = count > 0 ? script_of(arguments, static_cast<size_t>(count)) : nullptr;
        if (script != nullptr && script[0] != '\0') {
            chosen = script;
        }
    }
    size_t length = strlen(chosen);
    if (ends_in_py(chosen)) {
        length -= 3;
    }
    const size_t limit = capacity - 1 < kLongestName ? capacity - 1 : kLongestName;
    size_t out = 0;
    for (size_t i = 0; i < length && out < limit; ++i) {
        const char c = chosen[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || (c == '.' && out > 0);
        name[out++] = plain ? c : '_';
    }
    if (out == 0) {
        name[out++] = '_';
    }
    name[out] = '\0';
}

}  // namespace fragtrace::preload
