// Finds out-of-memory messages of PyTorch and BFC in a log of any length, even if the logger
// wrapped or prefixed them.
#pragma once

#include "analyzer/analysis/explain/bfc_dump.h"
#include "analyzer/analysis/explain/pytorch_message.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fragtrace::analyzer {

struct FoundMessage {
    std::uint64_t line = 0;  // where it first appears, from 1
    std::uint64_t times = 1;
    std::string text;  // PyTorch: the message joined to one line; BFC: its first line
    std::variant<PytorchMessage, BfcDump> message;
};

// Counts of other lines that report exhausted memory but give no figures.
struct OtherSigns {
    std::uint64_t plain_cuda_errors = 0;  // "CUDA error: out of memory"
    std::uint64_t preemptive = 0;         // rejected because of the memory fraction
    std::uint64_t address_space = 0;      // expandable segments found no address space
    std::uint64_t nccl = 0;               // NCCL's own allocation failed
    std::uint64_t xla = 0;                // XLA (JAX) could not allocate a buffer
};

class MessageScanner {
  public:
    void add_line(std::string_view line);
    // Call it after the last line and before reading the results.
    void finish();

    // Distinct messages in order of appearance; PyTorch messages with equal text are one entry.
    // Messages beyond kMostMessages are only counted, in left_out().
    [[nodiscard]] const std::vector<FoundMessage>& messages() const { return messages_; }

    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

    [[nodiscard]] const OtherSigns& other_signs() const { return other_; }

    [[nodiscard]] std::uint64_t lines() const { return line_; }

    static constexpr std::size_t kMostMessages = 100;

  private:
    struct Pending {
        std::uint64_t line = 0;
        std::string text;
    };

    void close(const Pending& pending);
    void close_dump();
    void keep(FoundMessage found);

    std::uint64_t line_ = 0;
    std::vector<Pending> pending_;  // PyTorch messages whose following lines are still added
    BfcDumpReader dump_;
    std::string dump_text_;
    std::uint64_t dump_line_ = 0;  // 0 = no dump is being read
    std::vector<FoundMessage> messages_;
    std::map<std::string, std::size_t, std::less<>> by_text_;
    std::uint64_t left_out_ = 0;
    OtherSigns other_;
};

}  // namespace fragtrace::analyzer
