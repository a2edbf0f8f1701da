#include "analyzer/analysis/explain/pytorch_message.h"

#include "analyzer/support/text.h"

#include <charconv>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kTried = "Tried to allocate ";

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view label) {
    const std::size_t at = text.find(label);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const char* begin = text.data() + at + label.size();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
    return error == std::errc() && end != begin ? std::optional(number) : std::nullopt;
}

std::string releases_of(std::string_view text, bool old_form) {
    if (old_form) {
        return contains(text, " cached)")            ? "up to 1.3"
               : contains(text, "max_split_size_mb") ? "1.10 to 2.0"
                                                     : "1.4 to 2.0";
    }
    if (contains(text, "capacty")) {
        return "2.1";
    }
    if (contains(text, "expandable_segments is enabled") ||
        contains(text, "expandable-segment reserve")) {
        return "2.15";
    }
    if (contains(text, "#optimizing-memory-usage") || contains(text, "PYTORCH_ALLOC_CONF")) {
        return "2.9 to 2.15";
    }
    return "2.2 to 2.9";
}

// Parses "Process 17 has 1.00 GiB memory in use." for any number of processes, and the same figure
// for this process.
void parse_processes(std::string_view text, PytorchMessage* message) {
    constexpr std::string_view kInUse = " memory in use";
    constexpr std::string_view kOwn = "this process has ";
    constexpr std::string_view kProcess = "Process ";
    while (true) {
        const std::size_t end = text.find(kInUse);
        if (end == std::string_view::npos) {
            return;
        }
        const std::string_view before = text.substr(0, end);
        if (const auto size = size_before(text, kInUse)) {
            const std::size_t own = before.rfind(kOwn);
            const std::size_t other = before.rfind(kProcess);
            if (own != std::string_view::npos && (other == std::string_view::npos || own > other)) {
                message->own_process = size;
            } else if (other != std::string_view::npos) {
                message->processes.push_back(
                    {number_after(before.substr(other), kProcess).value_or(0), *size});
            }
        }
        text.remove_prefix(end + kInUse.size());
    }
}

}  // namespace

std::optional<PytorchMessage> parse_pytorch_message(std::string_view text) {
    const std::size_t tried = text.find(kTried);
    if (tried == std::string_view::npos) {
        return std::nullopt;
    }
    const auto asked = size_at(text.substr(tried + kTried.size()));
    if (!asked) {
        return std::nullopt;
    }
    PytorchMessage message;
    message.tried = *asked;
    const std::string_view before = text.substr(0, tried);
    message.platform = contains(before, "HIP") ? "HIP" : contains(before, "XPU") ? "XPU" : "CUDA";
    const std::string_view rest = text.substr(tried);
    const bool old_form = contains(rest.substr(0, 64), "(GPU ");
    message.releases = releases_of(rest, old_form);
    message.device = number_after(rest, "GPU ");
    message.allowed = size_before(rest, " allowed");
    if (old_form) {
        message.capacity = size_before(rest, " total capacity");
        message.allocated = size_before(rest, " already allocated");
        message.device_free = size_before(rest, " free");
        message.unallocated = size_before(rest, " cached)");
        message.reserved = size_before(rest, " reserved in total by PyTorch");
        return message;
    }
    message.capacity = size_after(rest, "a total capacity of ");
    if (!message.capacity) {
        message.capacity = size_after(rest, "a total capacty of ");
    }
    message.device_free = size_before(rest, " is free");
    message.allocated = size_before(rest, " is allocated by PyTorch");
    message.private_cached = size_before(rest, " allocated in private pools");
    message.unallocated = size_before(rest, " is reserved by PyTorch but unallocated");
    message.expandable_segments = contains(rest, "expandable_segments is enabled");
    message.expandable_reserve = size_after(rest, "expandable-segment reserve of ");
    parse_processes(rest, &message);
    return message;
}

}  // namespace fragtrace::analyzer
