// The names of traces and of their folder.
#include "recorder/output_pattern.h"
#include "recorder/safe_names.h"
#include "recorder/session.h"
#include "system/environment.h"
#include "system/sys.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

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

void add_program(Text* name) {
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
    const size_t length = strlen(chosen) - (ends_in_py(chosen) ? 3 : 0);
    if (length == 0) {
        name->add("_");
    }
    add_safe(name, chosen, length);
}

void add_number_or_unknown(Text* text, int32_t number) {
    number < 0 ? text->add("unknown") : text->add_number(static_cast<uint64_t>(number));
}

void add_variable(Text* text, const PatternPiece& piece) {
    char name[256];
    Text(name, sizeof name).add(piece.text, piece.size);
    const char* value = piece.size < sizeof name ? variable(name) : nullptr;
    if (value == nullptr || *value == '\0') {
        text->add("unknown");
    } else {
        add_safe(text, value, strlen(value));
    }
}

}  // namespace

void trace_name(const Session& session, char name[kNameCapacity]) {
    Text text(name, kNameCapacity);
    add_program(&text);
    text.add(".");
    add_host(&text, session.header.host);
    if (session.place.rank >= 0) {
        text.add(".rank").add_number(static_cast<uint64_t>(session.place.rank));
    }
}

bool expand_output(Session* session) {
    static char expanded[kMaxPathBytes];  // static because the stack may be small
    Text text(expanded, sizeof expanded);
    const JobPlace& place = session->place;
    const char* at = session->options.output;
    for (PatternPiece piece{}; next_piece(&at, &piece);) {
        switch (piece.kind) {
            case 'h':
                add_host(&text, session->header.host);
                break;
            case 'p':
                text.add_number(static_cast<uint64_t>(session->pid));
                break;
            case 'r':
                add_number_or_unknown(&text, place.rank < 0 ? place.inherited_rank : place.rank);
                break;
            case 'q':
                add_variable(&text, piece);
                break;
            default:
                text.add(piece.text, piece.size);
                break;
        }
    }
    memcpy(session->options.output, expanded, sizeof expanded);
    return !text.full();
}

}  // namespace fragtrace::preload
