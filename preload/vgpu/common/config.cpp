// Parses FRAGTRACE_VIRTUAL_GPU=CARD[,count=N][,context=SIZE][,nccl=SIZE|model][,shared=NAME] and
// CUDA_VISIBLE_DEVICES.
#include "common/config.h"

#include <fragtrace/sizes.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

namespace fragtrace::vgpu {
namespace {

constexpr Card kCards[] = {
#define FT_CARD(name, total, context, sms, major, minor, clock, memory_clock, bus, l2, ecc) \
    Card{name,                                                                              \
         (total)*kMiB,                                                                      \
         (context)*kMiB,                                                                    \
         sms,                                                                               \
         major,                                                                             \
         minor,                                                                             \
         clock,                                                                             \
         memory_clock,                                                                      \
         bus,                                                                               \
         (l2)*1024,                                                                         \
         ecc},
#include "cards.def"
#undef FT_CARD
};

constexpr const char* kNoSuchCard =
    "neither a size nor a card (the cards:"
#define FT_CARD(name, ...) " " name
#include "cards.def"
#undef FT_CARD
    ")";

// A card given by its size alone has the other properties of an Ampere data-centre card.
constexpr Card kPlainCard = {"", 0, 256 * kMiB, 108, 8, 0, 1410000, 1215000, 5120, 40960 * 1024, 0};

// A size that does not fit in 64 bits counts as larger than any card.
bool parse_size(const char* text, size_t length, uint64_t* bytes) {
    const SizeText read = read_size(text, length, bytes);
    if (read == SizeText::kTooLarge) *bytes = kMaxCardBytes + 1;
    return read == SizeText::kRead || read == SizeText::kTooLarge;
}

bool find_card(const char* text, size_t length, Card* card) {
    for (const Card& known : kCards) {
        if (strlen(known.name) == length && strncasecmp(known.name, text, length) == 0) {
            *card = known;
            return true;
        }
    }
    return false;
}

Config invalid(const char* text, const char* why) {
    Config result{};
    result.status = Config::kInvalid;
    snprintf(result.problem,
             sizeof result.problem,
             "fragtrace: FRAGTRACE_VIRTUAL_GPU=%.80s: %s; expected "
             "CARD[,count=N][,context=SIZE][,nccl=SIZE|model][,shared=NAME], such as 24GiB or "
             "A100-80GB,count=2\n",
             text,
             why);
    return result;
}

// Names the cards whose names begin with `text`, if there are any: "A100" is not one card.
Config no_such_card(const char* text, size_t length) {
    char why[256];
    int used = snprintf(why, sizeof why, "'%.*s' could be", static_cast<int>(length), text);
    bool any = false;
    for (const Card& known : kCards) {
        if (length != 0 && used < static_cast<int>(sizeof why) &&
            strncasecmp(known.name, text, length) == 0) {
            used += snprintf(why + used,
                             sizeof why - static_cast<size_t>(used),
                             "%s %s",
                             any ? " or" : "",
                             known.name);
            any = true;
        }
    }
    return invalid(text, any ? why : kNoSuchCard);
}

// The name becomes a part of a file's name.
bool take_name(const char* text, size_t length, char out[kCardsBytes]) {
    constexpr const char* kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (length == 0 || length >= kCardsBytes || strspn(text, kAllowed) < length) return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

const char* parse_option(const char* text, size_t length, Config* result) {
    if (length > 6 && memcmp(text, "count=", 6) == 0) {
        int count = 0;
        for (size_t i = 6; i < length; ++i) {
            if (text[i] < '0' || text[i] > '9') return "count is no number";
            if (count <= kMaxDevices) count = count * 10 + (text[i] - '0');
        }
        if (count < 1 || count > kMaxDevices) return "count must be 1 to 64";
        result->device_count = count;
        return nullptr;
    }
    if (length > 8 && memcmp(text, "context=", 8) == 0) {
        if (!parse_size(text + 8, length - 8, &result->card.context_bytes)) {
            return "context is no size";
        }
        return nullptr;
    }
    if (length > 5 && memcmp(text, "nccl=", 5) == 0) {
        const bool off = length == 8 && memcmp(text + 5, "off", 3) == 0;
        result->nccl_bytes = 0;
        result->nccl_model = length == 10 && memcmp(text + 5, "model", 5) == 0;
        if (!off && !result->nccl_model && !parse_size(text + 5, length - 5, &result->nccl_bytes)) {
            return "nccl is neither a size nor model nor off";
        }
        return nullptr;
    }
    if (length > 7 && memcmp(text, "shared=", 7) == 0) {
        result->alone = length == 10 && memcmp(text + 7, "off", 3) == 0;
        if (!result->alone && !take_name(text + 7, length - 7, result->cards)) {
            return "shared is neither a name (at most 32 letters, digits, '.', '_' and '-') nor "
                   "off";
        }
        return nullptr;
    }
    return "unknown option";
}

// Returns the device whose UUID begins with `text` ("GPU-6672..."), or -1. `end` points after the
// UUID in `text`.
int device_by_uuid(const char* text, int present, const char** end) {
    const size_t length = strcspn(text, ",");
    *end = text + length;
    for (int i = 0; i < present && length > 4; ++i) {
        char uuid[kUuidTextBytes];
        uuid_text(i, uuid);
        if (strncasecmp(uuid, text, length) == 0) return i;
    }
    return -1;
}

// Reads the list as the real driver does: ordinals or UUIDs in the given order, up to the first one
// that does not exist. A device named twice hides all devices.
void apply_visible_devices(const char* visible, Config* result) {
    const int present = result->device_count;
    for (int i = 0; i < present; ++i)
        result->physical_index[i] = i;
    if (visible == nullptr) return;
    int count = 0;
    uint64_t seen = 0;
    const char* at = visible;
    while (*at != '\0' && count < present) {
        const char* end = at;
        long index = -1;
        if (strncasecmp(at, "GPU-", 4) == 0) {
            index = device_by_uuid(at, present, &end);
        } else {
            char* number_end = nullptr;
            index = strtol(at, &number_end, 10);
            end = number_end;
        }
        if (end == at || index < 0 || index >= present) break;
        if ((seen & uint64_t{1} << index) != 0) {
            count = 0;
            break;
        }
        seen |= uint64_t{1} << index;
        result->physical_index[count++] = static_cast<int>(index);
        at = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0') break;
    }
    result->device_count = count;
}

pthread_once_t g_once = PTHREAD_ONCE_INIT;
Config g_config;

void load() {
    g_config = parse_config(getenv("FRAGTRACE_VIRTUAL_GPU"), getenv("CUDA_VISIBLE_DEVICES"));
    const char* cards = getenv("FRAGTRACE_VIRTUAL_GPU_CARDS");
    if (cards != nullptr && g_config.cards[0] == '\0' && !g_config.alone) {
        (void)take_name(cards, strlen(cards), g_config.cards);
    }
    const char* debug = getenv("FRAGTRACE_VIRTUAL_GPU_DEBUG");
    g_config.debug = debug != nullptr && debug[0] != '\0' && strcmp(debug, "0") != 0;
}

}  // namespace

Config parse_config(const char* text, const char* visible_devices) {
    Config result{};
    if (text == nullptr) return result;
    size_t length = strcspn(text, ",");
    if (!find_card(text, length, &result.card)) {
        result.card = kPlainCard;
        if (!parse_size(text, length, &result.card.total_bytes)) {
            return no_such_card(text, length);
        }
        snprintf(result.card.name, sizeof result.card.name, "%.*s", static_cast<int>(length), text);
    }
    result.device_count = 1;
    for (const char* at = text + length; *at == ',';) {
        ++at;
        length = strcspn(at, ",");
        const char* problem = parse_option(at, length, &result);
        if (problem != nullptr) return invalid(text, problem);
        at += length;
    }
    if (result.card.total_bytes == 0 || result.card.total_bytes > kMaxCardBytes) {
        return invalid(text, "the card must have more than nothing and at most 1 TiB");
    }
    if (result.card.context_bytes > result.card.total_bytes) {
        return invalid(text, "the context does not fit on the card");
    }
    if (result.device_count > kDevicesWithWideSpace &&
        result.card.total_bytes > kMostBytesInNarrowSpace) {
        return invalid(text, "with more than 8 cards, each can have at most 192 GiB");
    }
    result.status = Config::kValid;
    apply_visible_devices(visible_devices, &result);
    return result;
}

const Config& config() {
    pthread_once(&g_once, load);
    return g_config;
}

void device_name(const Config& from, char* out, int out_bytes) {
    snprintf(out, static_cast<size_t>(out_bytes), "fragtrace virtual GPU (%s)", from.card.name);
}

int virtual_host() {
    const char* host = getenv("FRAGTRACE_VIRTUAL_GPU_HOST");
    const long number = host != nullptr ? strtol(host, nullptr, 10) : 0;
    return number > 0 && number < kMaxDevices ? static_cast<int>(number) : 0;
}

void device_uuid(int physical_index, unsigned char out[16]) {
    memcpy(out, "fragtrace-vgpu-", 15);
    out[14] = static_cast<unsigned char>('-' + virtual_host());
    out[15] = static_cast<unsigned char>('0' + physical_index);
}

void uuid_text(int physical_index, char out[kUuidTextBytes]) {
    unsigned char uuid[16];
    device_uuid(physical_index, uuid);
    int length = snprintf(out, kUuidTextBytes, "GPU-");
    for (int i = 0; i < 16; ++i) {
        const char* dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        length += snprintf(
            out + length, static_cast<size_t>(kUuidTextBytes - length), "%s%02x", dash, uuid[i]);
    }
}

}  // namespace fragtrace::vgpu
