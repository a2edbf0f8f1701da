// Parses FRAGTRACE_VIRTUAL_GPU=CARD[,count=N][,context=SIZE][,nccl=SIZE|model][,shared=NAME], the
// other variables of the virtual GPU, and CUDA_VISIBLE_DEVICES.
#include "common/config.h"

#include <fragtrace/sizes.h>

#include <initializer_list>
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

// Reads a number without sign, of at most `most`, up to a character that is no digit. False if
// there is none, or if it is larger.
bool read_number(const char** text, unsigned long long most, unsigned long long* number) {
    const char* at = *text;
    *number = 0;
    for (; *at >= '0' && *at <= '9'; ++at) {
        const auto digit = static_cast<unsigned>(*at - '0');
        if (*number > (most - digit) / 10) return false;
        *number = *number * 10 + digit;
    }
    const bool any = at != *text;
    *text = at;
    return any;
}

// The value as a number from `least` to `most`; `otherwise` if it is no such number.
unsigned number_of(const char* value, unsigned least, unsigned most, unsigned otherwise) {
    unsigned long long number = 0;
    const bool read = value != nullptr && read_number(&value, most, &number) && *value == '\0';
    return read && number >= least ? static_cast<unsigned>(number) : otherwise;
}

constexpr unsigned kNone = ~0u;
constexpr unsigned kMostLimit_s = 86'399;

// Returns 0 or 1; -1 if the value is no switch.
int read_switch(const char* value) {
    for (const char* word : {"1", "on", "yes", "true"}) {
        if (strcmp(value, word) == 0) return 1;
    }
    for (const char* word : {"", "0", "off", "no", "false"}) {
        if (strcmp(value, word) == 0) return 0;
    }
    return -1;
}

bool accepts_cards(const char* value) {
    char name[kCardsBytes];
    return take_name(value, strlen(value), name);
}

bool accepts_debug(const char* value) {
    return read_switch(value) >= 0;
}

bool accepts_host(const char* value) {
    return number_of(value, 0, kMaxDevices - 1, kNone) != kNone;
}

bool accepts_limit(const char* value) {
    return number_of(value, 1, kMostLimit_s, kNone) != kNone;
}

bool accepts_processes(const char* value) {
    unsigned process = 0;
    unsigned long long bytes = 0;
    int count = 0;
    while (*value != '\0') {
        if (++count > kMostSimulatedProcesses ||
            !next_simulated_process(&value, &process, &bytes)) {
            return false;
        }
    }
    return count != 0;
}

pthread_once_t g_once = PTHREAD_ONCE_INIT;
Config g_config;

void load() {
    g_config = parse_config(getenv("FRAGTRACE_VIRTUAL_GPU"), getenv("CUDA_VISIBLE_DEVICES"));
    for (const Variable& variable : kVariables) {
        const char* value = getenv(variable.name);
        if (g_config.status == Config::kValid && value != nullptr && *value != '\0' &&
            !variable.accepts(value)) {
            g_config = Config{};
            g_config.status = Config::kInvalid;
            snprintf(g_config.problem,
                     sizeof g_config.problem,
                     "fragtrace: %s=%.80s: give %s\n",
                     variable.name,
                     value,
                     variable.allowed);
        }
    }
    const char* cards = getenv("FRAGTRACE_VIRTUAL_GPU_CARDS");
    if (cards != nullptr && g_config.cards[0] == '\0' && !g_config.alone) {
        (void)take_name(cards, strlen(cards), g_config.cards);
    }
    const char* debug = getenv("FRAGTRACE_VIRTUAL_GPU_DEBUG");
    g_config.debug = debug != nullptr && read_switch(debug) == 1;
}

}  // namespace

const Variable kVariables[kVariableCount] = {
    {"FRAGTRACE_VIRTUAL_GPU_CARDS",
     accepts_cards,
     "a name of at most 32 letters, digits, '.', '_' and '-'",
     "set for COMMAND by --virtual-gpu: processes with the same name here share their cards"},
    {"FRAGTRACE_VIRTUAL_GPU_DEBUG",
     accepts_debug,
     "on or off (or 1, 0, yes, no, true, false)",
     "1: the virtual GPU says which functions it does not have"},
    {"FRAGTRACE_VIRTUAL_GPU_HOST",
     accepts_host,
     "a number from 0 to 63",
     "number of the virtual host: on another one, cards have other UUIDs (default: 0)"},
    {"FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT",
     accepts_limit,
     "a number of seconds from 1 to 86399",
     "how many seconds a rank waits for the others of a new communicator, and for its calls at its "
     "end (default: 600)"},
    {"FRAGTRACE_VIRTUAL_GPU_PROCESSES",
     accepts_processes,
     "PID:BYTES[,PID:BYTES...], at most 16, such as 4242:1073741824",
     "PID:BYTES[,PID:BYTES...]: other processes that NVML reports on the first card"},
};

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
    if (result.card.total_bytes < kMiB) {
        return invalid(text, "the card has less than 1 MiB; a size has a unit, such as 16GiB");
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
    return static_cast<int>(number_of(getenv("FRAGTRACE_VIRTUAL_GPU_HOST"), 0, kMaxDevices - 1, 0));
}

unsigned nccl_limit_s() {
    constexpr unsigned kUsual_s = 600;  // PyTorch's limit for collectives
    return number_of(getenv("FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT"), 1, kMostLimit_s, kUsual_s);
}

bool next_simulated_process(const char** text, unsigned* process, unsigned long long* bytes) {
    unsigned long long number = 0;
    const char* at = *text;
    if (!read_number(&at, 0xffffffff, &number) || number == 0 || *at++ != ':' ||
        !read_number(&at, ~0ull, bytes) || (*at != ',' && *at != '\0') ||
        (*at == ',' && at[1] == '\0')) {
        return false;
    }
    *process = static_cast<unsigned>(number);
    *text = *at == ',' ? at + 1 : at;
    return true;
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
