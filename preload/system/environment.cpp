#include "system/environment.h"

#include "system/plain_text.h"

#include <unistd.h>

namespace fragtrace::preload {
namespace {

char* const kNone[] = {nullptr};
// Not among the variables that are zero: these would be in a further page of memory.
__attribute__((section(".data"))) char** g_at_start = nullptr;

bool has_setting(char* const* variables) {
    for (char* const* at = variables; at != nullptr && *at != nullptr; ++at) {
        if (begins_with(*at, "FRAGTRACE_")) {
            return true;
        }
    }
    return false;
}

}  // namespace

// The kernel places the variables behind the arguments, where they stay. A list elsewhere was made
// by setenv(), which may free it later.
void note_environment(int count, char** arguments, char** variables) {
    if (variables == arguments + count + 1) {
        g_at_start = variables;
    }
}

char* const* environment() {
    if (!has_setting(environ) && has_setting(g_at_start)) {
        return g_at_start;
    }
    return environ == nullptr ? kNone : environ;
}

const char* variable(const char* name) {
    const size_t size = text_length(name);
    for (char* const* at = environment(); *at != nullptr; ++at) {
        if (begins_with(*at, name) && (*at)[size] == '=') {
            return *at + size + 1;
        }
    }
    return nullptr;
}

}  // namespace fragtrace::preload
