// Names in NVTX: domains, registered strings, and the messages of ranges, marks and heaps.
//
// Thread-safe, without locks. A name is cut at 255 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

namespace fragtrace::preload {

constexpr size_t kNvtxNameBytes = 256;

// NVTX's binary interface.
enum NvtxMessageType : int32_t { kNvtxAscii = 1, kNvtxUnicode = 2, kNvtxRegistered = 3 };

struct NvtxEventAttributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const void* message;
};

static_assert(sizeof(NvtxEventAttributes) == 48);

// "DOMAIN: MESSAGE", or one of the two if the other is empty. PyTorch's emit_nvtx adds a number to
// each operation's name. Everything after the name is dropped, because otherwise no two ranges
// would have the same name.
class NvtxName {
  public:
    NvtxName(const void* domain, const char* message);
    NvtxName(const void* domain, const wchar_t* message);
    NvtxName(const void* domain, const NvtxEventAttributes* event);
    NvtxName(const void* domain, int32_t message_type, const void* message);

    [[nodiscard]] const char* text() const { return name_; }

  private:
    char name_[kNvtxNameBytes];
};

// Return the handle of a new domain or registered string: what NVTX passes back to us later. 0
// without room.
uintptr_t add_nvtx_domain(const char* name);
uintptr_t add_nvtx_string(const char* text);

}  // namespace fragtrace::preload
