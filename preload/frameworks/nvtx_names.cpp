#include "frameworks/nvtx_names.h"

#include "system/losses.h"
#include "system/sys.h"

#include <initializer_list>
#include <string.h>

namespace fragtrace::preload {
namespace {

// Domains and registered strings are handles that we return: indexes into these tables, from 1.
class Names {
  public:
    // Returns 0 if the table is full.
    uintptr_t add(const char* text) {
        const uint32_t at = __atomic_fetch_add(&count_, 1, __ATOMIC_RELAXED);
        if (at >= kMost) {
            count_up(&g_entries_without_room);
            return 0;
        }
        Text(names_[at], kNvtxNameBytes).add(text);
        return at + 1;
    }

    [[nodiscard]] const char* text(const void* handle) const {
        const auto number = reinterpret_cast<uintptr_t>(handle);
        return number == 0 || number > kMost ? "" : names_[number - 1];
    }

  private:
    static constexpr uint32_t kMost = 1024;
    uint32_t count_;
    char names_[kMost][kNvtxNameBytes];
};

Names g_domains;
Names g_strings;

void copy_wide(const wchar_t* text, char* to) {
    size_t size = 0;
    for (; text != nullptr && *text != L'\0' && size + 5 < kNvtxNameBytes; ++text) {
        const auto point = static_cast<char32_t>(*text);
        if (point < 0x80) {
            to[size++] = static_cast<char>(point);
        } else if (point < 0x800) {
            to[size++] = static_cast<char>(0xc0 | (point >> 6));
            to[size++] = static_cast<char>(0x80 | (point & 63));
        } else if (point < 0x10000) {
            to[size++] = static_cast<char>(0xe0 | (point >> 12));
            to[size++] = static_cast<char>(0x80 | ((point >> 6) & 63));
            to[size++] = static_cast<char>(0x80 | (point & 63));
        } else {
            to[size++] = static_cast<char>(0xf0 | ((point >> 18) & 7));
            to[size++] = static_cast<char>(0x80 | ((point >> 12) & 63));
            to[size++] = static_cast<char>(0x80 | ((point >> 6) & 63));
            to[size++] = static_cast<char>(0x80 | (point & 63));
        }
    }
    to[size] = '\0';
}

void drop_details(char* name) {
    for (const char* detail : {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "}) {
        char* found = strstr(name, detail);
        if (found != nullptr) {
            *found = '\0';
        }
    }
}

}  // namespace

NvtxName::NvtxName(const void* domain, const char* message) {
    Text text(name_, sizeof name_);
    const char* prefix = g_domains.text(domain);
    text.add(prefix);
    if (message != nullptr && *message != '\0') {
        text.add(*prefix != '\0' ? ": " : "").add(message);
    }
    drop_details(name_);
}

NvtxName::NvtxName(const void* domain, const wchar_t* message) : name_{} {
    char text[kNvtxNameBytes];
    copy_wide(message, text);
    *this = NvtxName(domain, text);
}

NvtxName::NvtxName(const void* domain, int32_t message_type, const void* message) : name_{} {
    if (message_type == kNvtxAscii) {
        *this = NvtxName(domain, static_cast<const char*>(message));
    } else if (message_type == kNvtxUnicode) {
        *this = NvtxName(domain, static_cast<const wchar_t*>(message));
    } else if (message_type == kNvtxRegistered) {
        *this = NvtxName(domain, g_strings.text(message));
    } else {
        *this = NvtxName(domain, "");
    }
}

NvtxName::NvtxName(const void* domain, const NvtxEventAttributes* event)
    : NvtxName(domain,
               event == nullptr ? 0 : event->message_type,
               event == nullptr ? nullptr : event->message) {}

uintptr_t add_nvtx_domain(const char* name) {
    return g_domains.add(name);
}

uintptr_t add_nvtx_string(const char* text) {
    return g_strings.add(text);
}

}  // namespace fragtrace::preload
