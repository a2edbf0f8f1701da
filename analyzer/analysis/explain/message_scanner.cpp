#include "analyzer/analysis/explain/message_scanner.h"

#include "analyzer/support/text.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kPytorch = "out of memory. Tried to allocate";
// Longer than any message, even one that lists the processes of a shared card.
constexpr std::size_t kMostMessageBytes = 4096;
constexpr std::size_t kMostPending = 64;

// The last words of each form of the message. It ends there, whatever follows on the line.
constexpr std::string_view kEnds[] = {
    "reserved in total by PyTorch)",
    " cached)",
    "pytorch-cuda-alloc-conf)",
    "environment-variables)",
    "PYTORCH_CUDA_ALLOC_CONF",
};

// Removes colours, repeated and leading blanks, and the rank prefix that launchers add.
std::string cleaned(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
            i = line.find_first_not_of("0123456789;", i + 2);
            if (i == std::string_view::npos) {
                break;
            }
            continue;  // skips the letter that ends the escape sequence
        }
        const bool blank = line[i] == ' ' || line[i] == '\t' || line[i] == '\r';
        if (!blank) {
            text += line[i];
        } else if (!text.empty() && text.back() != ' ') {
            text += ' ';
        }
    }
    constexpr std::string_view kRank = "[rank";
    if (text.starts_with(kRank)) {
        const std::size_t end = text.find("]:");
        if (end != std::string::npos && end < 16) {
            text.erase(0, text.find_first_not_of(' ', end + 2));
        }
    }
    return text;
}

}  // namespace

void MessageScanner::add_line(std::string_view line) {
    ++line_;
    const std::string text = cleaned(line);
    if (BfcDumpReader::begins(text)) {
        close_dump();
        dump_ = BfcDumpReader();
        dump_line_ = line_;
        dump_text_ = text.substr(text.find("Allocator ("));
    }
    if (dump_line_ != 0) {
        dump_.add(text);
    }
    other_.plain_cuda_errors += contains(text, "CUDA error: out of memory") ? 1 : 0;
    other_.preemptive += contains(text, "Allocation was preemptively rejected") ? 1 : 0;
    other_.address_space += contains(text, "[ExpandableSegmentVA] Failed to reserve") ? 1 : 0;
    other_.xla += contains(text, "Out of memory while trying to allocate ") ? 1 : 0;
    other_.nccl += contains(text, "NCCL") && contains(text, "out of memory") ? 1 : 0;

    // Following lines are part of the message as long as it may continue.
    std::vector<Pending> open;
    std::swap(open, pending_);
    for (Pending& pending : open) {
        pending.text += ' ';
        pending.text.append(text, 0, kMostMessageBytes);
        if (pending.text.size() < kMostMessageBytes && !text.empty()) {
            pending_.push_back(std::move(pending));
        } else {
            close(pending);
        }
    }
    for (std::size_t at = text.find(kPytorch); at != std::string::npos;) {
        // Include the platform's name before it: "CUDA ", "HIP ".
        const std::size_t begin = at > 5 ? at - 5 : 0;
        const std::size_t next = text.find(kPytorch, at + 1);
        const Pending found = {line_,
                               text.substr(begin, std::min(kMostMessageBytes, next - begin))};
        if (next != std::string::npos || pending_.size() == kMostPending) {
            close(found);  // the next message begins on the same line, so this one ends there
        } else {
            pending_.push_back(found);
        }
        at = next;
    }
}

void MessageScanner::finish() {
    for (const Pending& pending : pending_) {
        close(pending);
    }
    pending_.clear();
    close_dump();
}

void MessageScanner::close(const Pending& pending) {
    std::string_view text = pending.text;
    const std::size_t own = text.find(kPytorch);
    text = text.substr(0, text.find(kPytorch, own + 1));  // cut off the next message
    const auto message = parse_pytorch_message(text);
    if (!message) {
        ++left_out_;
        return;
    }
    std::size_t end = std::string_view::npos;
    for (const std::string_view last : kEnds) {
        const std::size_t at = text.find(last);
        if (at != std::string_view::npos &&
            (end == std::string_view::npos || at + last.size() > end)) {
            end = at + last.size();
        }
    }
    text = text.substr(0, end);
    keep({pending.line, 1, std::string(text), *message});
}

void MessageScanner::close_dump() {
    if (dump_line_ != 0) {
        keep({dump_line_, 1, dump_text_, dump_.dump()});
        dump_line_ = 0;
    }
}

void MessageScanner::keep(FoundMessage found) {
    const bool dump = std::holds_alternative<BfcDump>(found.message);
    const auto known = dump ? by_text_.end() : by_text_.find(found.text);
    if (known != by_text_.end()) {
        ++messages_[known->second].times;
        return;
    }
    if (messages_.size() >= kMostMessages) {
        ++left_out_;
        return;
    }
    by_text_.emplace(found.text, messages_.size());
    messages_.push_back(std::move(found));
}

}  // namespace fragtrace::analyzer
