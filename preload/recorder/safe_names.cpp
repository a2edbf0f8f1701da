#include "recorder/safe_names.h"

#include <string.h>

namespace fragtrace::preload {

void add_safe(Text* name, const char* text, size_t size) {
    constexpr size_t kLongest = 64;
    for (size_t i = 0; i < size && i < kLongest; ++i) {
        const char c = text[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || (c == '.' && i > 0);
        name->add(plain ? &c : "_", 1);
    }
}

void add_host(Text* name, const char* host) {
    const size_t label = strcspn(host, ".");
    if (host[0] == '\0') {
        name->add("unknown");
    } else if (strspn(host, "0123456789") < label) {
        add_safe(name, host, label);
    } else {
        name->add("host");
        for (const char* at = host; *at != '\0'; ++at) {
            add_safe(name, *at == '.' ? "-" : at, 1);
        }
    }
}

}  // namespace fragtrace::preload
