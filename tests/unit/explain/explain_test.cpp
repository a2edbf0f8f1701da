// Reads the numbers of out-of-memory messages and checks the conclusions drawn from them.
#include "analyzer/analysis/explain/explanation.h"
#include "analyzer/analysis/explain/message_scanner.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <variant>

namespace fragtrace::analyzer {
namespace {

MessageScanner scan(std::string_view text) {
    MessageScanner scanner;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        scanner.add_line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    scanner.finish();
    return scanner;
}

PytorchMessage pytorch(std::string_view text) {
    const MessageScanner scanner = scan(text);
    REQUIRE(scanner.messages().size() == 1);
    return std::get<PytorchMessage>(scanner.messages()[0].message);
}

Explanation explain_text(std::string_view text) {
    const MessageScanner scanner = scan(text);
    REQUIRE(scanner.messages().size() == 1);
    return std::visit([](const auto& message) { return explain(message); },
                      scanner.messages()[0].message);
}

bool any_contains(const std::vector<std::string>& lines, std::string_view part) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find(part) != std::string::npos;
    });
}

}  // namespace

TEST_CASE("a printed size stands for every size that rounds to it", "[explain]") {
    std::size_t length = 0;
    const auto gib = size_at("13.25 GiB reserved", &length);
    REQUIRE(gib);
    CHECK(length == 9);
    CHECK(gib->bytes == 13 * kGiB + kGiB / 4);
    CHECK(gib->error_bytes == 5368710);  // half of 0.01 GiB, rounded up
    CHECK(size_at("1024 bytes")->error_bytes == 0);
    CHECK(size_at("2.00GiB (rounded")->bytes == 2 * kGiB);
    CHECK(size_at("512B")->bytes == 512);
    CHECK(size_at("20 MB")->bytes == 20 * kMiB);
    CHECK_FALSE(size_at("GiB"));
    CHECK_FALSE(size_at("12 apples"));
    CHECK_FALSE(size_at("3 Bins"));
    CHECK_FALSE(size_at("99999999999999999999 GiB"));
    CHECK_FALSE(size_at("1."));
    CHECK(size_before("GPU 0; 16.00 GiB total capacity;", " total capacity")->bytes == 16 * kGiB);
    CHECK_FALSE(size_before("some total capacity", " total capacity"));
}

TEST_CASE("messages of old and new PyTorch releases are read", "[explain]") {
    struct Era {
        std::string_view text;
        std::string_view releases;
        std::uint64_t allocated;
        bool reserved;
        bool unallocated;
    };

    const auto era = GENERATE(
        Era{"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.00 GiB total "
            "capacity; 8.50 GiB already allocated; 11.00 MiB free; 37.50 MiB cached)",
            "up to 1.3",
            17 * kGiB / 2,
            false,
            true},
        Era{"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.00 GiB total "
            "capacity; 8.50 GiB already allocated; 11.00 MiB free; 9.00 GiB allowed; 8.54 GiB "
            "reserved "
            "in total by PyTorch)",
            "1.4 to 2.0",
            17 * kGiB / 2,
            true,
            false},
        Era{"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; "
            "10.00 "
            "GiB total capacity; 8.50 GiB already allocated; 11.00 MiB free; 8.54 GiB reserved in "
            "total "
            "by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb "
            "to "
            "avoid fragmentation.  See documentation for Memory Management and "
            "PYTORCH_CUDA_ALLOC_CONF",
            "1.10 to 2.0",
            17 * kGiB / 2,
            true,
            false},
        Era{"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 "
            "has a "
            "total capacty of 10.00 GiB of which 11.00 MiB is free. Of the allocated memory 8.50 "
            "GiB is "
            "allocated by PyTorch, and 37.50 MiB is reserved by PyTorch but unallocated. If "
            "reserved "
            "but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
            "2.1",
            17 * kGiB / 2,
            false,
            true},
        Era{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a "
            "total "
            "capacity of 10.00 GiB of which 11.00 MiB is free. Process 17 has 1.00 GiB memory in "
            "use. "
            "Including non-PyTorch memory, this process has 8.90 GiB memory in use. Of the "
            "allocated "
            "memory 8.50 GiB is allocated by PyTorch, with 30.00 MiB allocated in private pools "
            "(e.g., "
            "CUDA Graphs), and 37.50 MiB is reserved by PyTorch but unallocated. If reserved but "
            "unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
            "to avoid fragmentation.  See documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
            "2.2 to 2.9",
            17 * kGiB / 2,
            false,
            true},
        Era{"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB. GPU 1 has a "
            "total "
            "capacity of 10.00 GiB of which 11.00 MiB is free. Of the allocated memory 8.50 GiB is "
            "allocated by PyTorch, and 37.50 MiB is reserved by PyTorch but unallocated. If "
            "reserved "
            "but unallocated memory is large try setting "
            "PYTORCH_ALLOC_CONF=expandable_segments:True to "
            "avoid fragmentation.  See documentation for Memory Management  "
            "(https://docs.pytorch.org/"
            "docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
            "2.9 to 2.15",
            17 * kGiB / 2,
            false,
            true});
    const PytorchMessage message = pytorch(era.text);
    CHECK(message.releases == era.releases);
    CHECK(message.device == 1);
    CHECK(message.tried.bytes == 20 * kMiB);
    CHECK(message.capacity->bytes == 10 * kGiB);
    CHECK(message.device_free->bytes == 11 * kMiB);
    CHECK(message.allocated->bytes == era.allocated);
    CHECK(message.reserved.has_value() == era.reserved);
    CHECK(message.unallocated.has_value() == era.unallocated);
    CHECK(message.platform == (era.text.find("HIP") == std::string_view::npos ? "CUDA" : "HIP"));
    if (message.own_process) {
        CHECK(message.private_cached->bytes == 30 * kMiB);
        REQUIRE(message.processes.size() == 1);
        CHECK(message.processes[0].pid == 17);
        CHECK(message.processes[0].in_use.bytes == kGiB);
    }
    if (era.text.find("allowed") != std::string_view::npos) {
        CHECK(message.allowed->bytes == 9 * kGiB);
    }
}

TEST_CASE("less reserved than allocated is reported as a contradiction", "[explain]") {
    const Explanation explanation = explain_text(
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 16.00 GiB total "
        "capacity; 14.00 GiB already allocated; 500.00 MiB free; 13.25 GiB reserved in total by "
        "PyTorch)");
    CHECK(explanation.verdict == "contradictory");
    REQUIRE(explanation.contradictions.size() == 1);
    CHECK(explanation.contradictions[0].starts_with(
        "13.25 GiB reserved is less than the 14.00 GiB allocated"));
    CHECK(any_contains(explanation.certain, "512.00 MiB requested, 500.00 MiB free on the device"));
}

TEST_CASE("figures that differ only by rounding do not contradict each other", "[explain]") {
    // Both are printed as 8.50 GiB, but the true reserved value may be the larger one.
    const Explanation explanation = explain_text(
        "CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 10.00 GiB total capacity; 8.50 "
        "GiB "
        "already allocated; 11.00 MiB free; 8.50 GiB reserved in total by PyTorch)");
    CHECK(explanation.verdict == "genuine");
    CHECK(explanation.contradictions.empty());
}

TEST_CASE("the cause follows from the cached and the free memory", "[explain]") {
    const auto message = [](std::string_view tried,
                            std::string_view free,
                            std::string_view allocated,
                            std::string_view extra,
                            std::string_view unallocated) {
        return "CUDA out of memory. Tried to allocate " + std::string(tried) +
               ". GPU 0 has a total capacity of 24.00 GiB of which " + std::string(free) +
               " is free. Of the allocated memory " + std::string(allocated) +
               " is allocated by PyTorch, " + std::string(extra) + "and " +
               std::string(unallocated) + " is reserved by PyTorch but unallocated.";
    };
    SECTION("request larger than the card") {
        const Explanation explanation =
            explain_text(message("2.00 GiB", "100.00 MiB", "22.00 GiB", "", "500.00 MiB"));
        CHECK(explanation.verdict == "genuine");
        CHECK(explanation.sentence.find("1.41 GiB short of the requested 2.00 GiB") !=
              std::string::npos);
        CHECK(any_contains(explanation.certain, "of the card are neither free nor PyTorch's"));
    }
    SECTION("enough memory is cached, but in pieces") {
        const Explanation explanation =
            explain_text(message("2.00 GiB", "100.00 MiB", "20.00 GiB", "", "3.00 GiB"));
        CHECK(explanation.verdict == "fragmented");
        CHECK(explanation.sentence.find("3 GiB cached by PyTorch but not usable") !=
              std::string::npos);
        CHECK(any_contains(explanation.certain, "waited for all streams"));
    }
    SECTION("enough only together with the device's free memory") {
        const Explanation explanation =
            explain_text(message("2.00 GiB", "1.50 GiB", "20.00 GiB", "", "1.00 GiB"));
        CHECK(explanation.verdict == "fragmented");
        CHECK(explanation.sentence.find("are enough together, but not separately") !=
              std::string::npos);
    }
    SECTION("enough only together with private pools") {
        const Explanation explanation =
            explain_text(message("2.00 GiB",
                                 "100.00 MiB",
                                 "22.00 GiB",
                                 "with 3.00 GiB allocated in private pools (e.g., CUDA Graphs), ",
                                 "100.00 MiB"));
        CHECK(explanation.verdict == "private_pools");
    }
    SECTION("two decimals limit the precision") {
        const Explanation explanation =
            explain_text(message("2.00 GiB", "1.00 GiB", "20.00 GiB", "", "1.00 GiB"));
        CHECK(explanation.verdict == "unclear");
    }
    SECTION("the driver had enough") {
        const Explanation explanation =
            explain_text(message("2.00 GiB", "4.00 GiB", "10.00 GiB", "", "1.00 GiB"));
        CHECK(explanation.verdict == "unclear");
        CHECK(explanation.sentence.find("but refused the request") != std::string::npos);
    }
}

TEST_CASE("a refusal by the memory fraction is reported as a limit", "[explain]") {
    const Explanation explanation = explain_text(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
        "of "
        "which 12.00 GiB is free. 12.00 GiB allowed; Of the allocated memory 11.00 GiB is "
        "allocated by "
        "PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.");
    CHECK(explanation.verdict == "limit");
}

TEST_CASE("wrapped, prefixed and repeated messages are found in logs", "[explain]") {
    const MessageScanner scanner = scan(
        "epoch 1\n"
        "[rank0]: torch.OutOfMemoryError: \x1b[31mCUDA out of memory.\x1b[0m Tried to\n"
        "one more, not a message: Tried to allocate\n"
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00\n"
        "[rank1]:     GiB. GPU 1 has a total capacity of 24.00 GiB of which 100.00\r\n"
        "[rank1]:     MiB is free. Of the allocated memory 22.00 GiB is allocated by PyTorch, and\n"
        "[rank1]:     500.00 MiB is reserved by PyTorch but unallocated.\n"
        "\n"
        "CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 10.00 GiB total capacity; 8.50 "
        "GiB "
        "already allocated; 11.00 MiB free; 8.50 GiB reserved in total by PyTorch)\n"
        "CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 10.00 GiB total capacity; 8.50 "
        "GiB "
        "already allocated; 11.00 MiB free; 8.50 GiB reserved in total by PyTorch)\n"
        "RuntimeError: CUDA error: out of memory\n"
        "NCCL WARN Cuda failure 2 'out of memory'\n");
    REQUIRE(scanner.messages().size() == 2);
    const auto& wrapped = std::get<PytorchMessage>(scanner.messages()[0].message);
    CHECK(scanner.messages()[0].line == 4);
    CHECK(wrapped.tried.bytes == 2 * kGiB);
    CHECK(wrapped.device_free->bytes == 100 * kMiB);
    CHECK(wrapped.unallocated->bytes == 500 * kMiB);
    CHECK(scanner.messages()[1].times == 2);
    CHECK(scanner.messages()[1].text.ends_with("reserved in total by PyTorch)"));
    CHECK(scanner.other_signs().plain_cuda_errors == 1);
    CHECK(scanner.other_signs().nccl == 1);
}

TEST_CASE("messages beyond the maximum are counted but not kept", "[explain]") {
    MessageScanner scanner;
    for (std::size_t i = 0; i < MessageScanner::kMostMessages + 7; ++i) {
        scanner.add_line("CUDA out of memory. Tried to allocate " + std::to_string(2 * i) +
                         ".00 MiB (GPU 0; 1.00 GiB total capacity)");
    }
    scanner.finish();
    CHECK(scanner.messages().size() == MessageScanner::kMostMessages);
    CHECK(scanner.left_out() == 7);
}

TEST_CASE("every chunk of a BFC dump is read", "[explain]") {
    const std::string prefix = "2026-01-01 10:00:00.1: I tsl/framework/bfc_allocator.cc:1040] ";
    const std::string dump =
        "W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.0KiB "
        "(rounded to 3072)requested by op Add\n" +
        prefix + "BFCAllocator dump for GPU_0_bfc\n" + prefix +
        "Bin (256): \tTotal Chunks: 1, Chunks in use: 1. 256B allocated for chunks.\n" + prefix +
        "Next region of size 8192\n" + prefix + "InUse at 7f0000000000 of size 2048 next 1\n" +
        prefix + "Free  at 7f0000000800 of size 2048 next 2\n" + prefix +
        "InUse at 7f0000001000 of size 1024 next 3\n" + prefix +
        "Free  at 7f0000001400 of size 2304 next 4\n" + prefix +
        "InUse at 7f0000001d00 of size 768 next 18446744073709551615\n" + prefix +
        "1 Chunks of size 2048 totalling 2.0KiB\n" + prefix +
        "Stats: \nLimit:                          8192\nInUse:                          3840\n"
        "MaxInUse:                       8000\n";
    const MessageScanner scanner = scan(dump);
    REQUIRE(scanner.messages().size() == 1);
    const auto& read = std::get<BfcDump>(scanner.messages()[0].message);
    CHECK(read.allocator == "GPU_0_bfc");
    CHECK(read.rounded_bytes == 3072);
    CHECK(read.in_use.count == 3);
    CHECK(read.in_use.bytes == 3840);
    CHECK(read.free.largest_bytes == 2304);
    REQUIRE((read.in_use_sum && read.limit));
    CHECK(read.in_use_sum->bytes == 3840);
    CHECK(read.in_use_sum->error_bytes == 0);
    CHECK(read.limit->bytes == 8192);
    const Explanation explanation = explain(read);
    CHECK(explanation.verdict == "fragmented");
    CHECK(any_contains(explanation.certain, "fragmentation 0.471"));  // 1 - 2304 / 4352

    SECTION("missing lines are noticed") {
        std::string cut = dump;
        cut.erase(cut.find("InUse at 7f0000001000"), 20);
        CHECK(explain_text(cut).verdict == "contradictory");
    }
    SECTION("a request larger than all free memory is genuine") {
        std::string larger = dump;
        larger.replace(larger.find("rounded to 3072"), 15, "rounded to 5120");
        CHECK(explain_text(larger).verdict == "genuine");
    }
    SECTION("memory may be freed between failure and dump: unclear") {
        std::string smaller = dump;
        smaller.replace(smaller.find("rounded to 3072"), 15, "rounded to 2304");
        CHECK(explain_text(smaller).verdict == "unclear");
    }
    SECTION("without chunks and sums the verdict is unclear") {
        CHECK(explain_text(dump.substr(0, dump.find('\n'))).verdict == "unclear");
    }
}

const BfcDump& dump_of(const MessageScanner& scanner) {
    REQUIRE(scanner.messages().size() == 1);
    return std::get<BfcDump>(scanner.messages()[0].message);
}

std::string statistics(const std::string& asked,
                       const std::string& in_use,
                       const std::string& pool) {
    return "W bfc_allocator.cc:511] Allocator (GPU_0_bfc) ran out of memory trying to allocate " +
           asked + " from the lower end requested by op\n" +
           "I bfc_allocator.cc:1191] Allocator memory summary: rounded request " + asked +
           ", total free in pool 1.00MiB, largest free chunk usable by lower end 512.0KiB, "
           "unallocated bytes 0B, pool size " +
           pool + ", pool limit " + pool + "\n" +
           "I bfc_allocator.cc:1210] Stats: \nLimit:            " + pool +
           "\nInUse:                    " + in_use +
           "\nMaxInUse:                 15.20GiB\nNumAllocs:                    2191\n"
           "LargestFreeBlock:                   0B\n";
}

TEST_CASE("rounded BFC figures carry their rounding error", "[explain]") {
    const MessageScanner scanner = scan(statistics("3.00GiB", "14.16GiB", "15.20GiB"));
    const BfcDump& dump = dump_of(scanner);
    REQUIRE((dump.in_use_sum && dump.pool && dump.limit && dump.largest_usable));
    CHECK(dump.in_use_sum->bytes == 15204184228);  // 14.16 GiB
    // Half of the last digit (0.005 GiB), plus up to 1 MiB that was cut off before rounding.
    CHECK(dump.in_use_sum->error_bytes == 5368710 + 1048576);
    CHECK(dump.pool->bytes == 16320875725);
    CHECK(dump.largest_usable->bytes == 524288);
    CHECK(dump.largest_usable->error_bytes == 52);
    CHECK_FALSE(dump.largest_free);  // 0B: not filled in
    CHECK(dump.conflicts == 0);
    const Explanation explanation = explain(dump);
    CHECK(explanation.contradictions.empty());
    CHECK(explanation.verdict == "genuine");
    CHECK(any_contains(explanation.certain, "14.2 GiB (rounded: 6.12 MiB more or less) of"));
}

TEST_CASE("rounded figures give no verdict if two causes remain possible", "[explain]") {
    // 1.04 GiB are free, within 12.2 MiB.
    CHECK(explain_text(statistics("1.06GiB", "14.16GiB", "15.20GiB")).verdict == "genuine");
    CHECK(explain_text(statistics("1.04GiB", "14.16GiB", "15.20GiB")).verdict == "unclear");
    CHECK(explain_text(statistics("1.02GiB", "14.16GiB", "15.20GiB")).verdict == "fragmented");
    CHECK(explain_text(statistics("1.02GiB", "15.21GiB", "15.20GiB")).verdict != "contradictory");
    CHECK(explain_text(statistics("1.02GiB", "15.23GiB", "15.20GiB")).verdict == "contradictory");
}

TEST_CASE("every number format of BFC messages is read", "[explain]") {
    const auto in_use = [](const std::string& text) {
        const MessageScanner scanner = scan(statistics("3.00GiB", text, "64.00GiB"));
        const BfcDump dump = dump_of(scanner);
        return dump.in_use_sum ? std::pair(dump.in_use_sum->bytes, dump.in_use_sum->error_bytes)
                               : std::pair(std::uint64_t{1}, dump.negative);
    };
    using Read = std::pair<std::uint64_t, std::uint64_t>;
    CHECK(in_use("15203450880") == Read{15203450880, 0});
    CHECK(in_use("15,203,450,880") == Read{15203450880, 0});
    CHECK(in_use("512B") == Read{512, 0});
    CHECK(in_use("1.1KiB") == Read{1126, 52});
    CHECK(in_use("345.67MiB") == Read{362461266, 5243 + 1024});
    CHECK(in_use("0B") == Read{0, 0});
    CHECK(in_use("-5") == Read{1, 1});
    CHECK(in_use("-1.50GiB") == Read{1, 1});
    CHECK(explain_text(statistics("3.00GiB", "-5", "64.00GiB")).verdict == "contradictory");
}

TEST_CASE("the chunk list gives exact sums although the statistics are rounded", "[explain]") {
    const MessageScanner scanner = scan(
        "W bfc_allocator.cc:273] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
        "3.00MiB.  Current allocation summary follows.\n"
        "I bfc_allocator.cc:665] Chunk at 0x10216400000 of size 4194304\n"
        "I bfc_allocator.cc:665] Chunk at 0x10216800000 of size 2097152\n"
        "I bfc_allocator.cc:674] Free at 0x10216a00000 of size 2097152\n"
        "I bfc_allocator.cc:665] Chunk at 0x10216c00000 of size 1048576\n"
        "I bfc_allocator.cc:674] Free at 0x10216d00000 of size 2097152\n"
        "Stats: \nLimit: 11.00MiB\nInUse: 7.00MiB\n");
    const BfcDump& dump = dump_of(scanner);
    CHECK(dump.in_use.count == 3);
    const Explanation explanation = explain(dump);
    CHECK(explanation.verdict == "fragmented");
    CHECK(any_contains(explanation.certain, "7 MiB of the pool's 11 MiB are in use, in 3 chunks"));
}

TEST_CASE("for a log without statistics the report says how to get them", "[explain]") {
    const std::string line =
        "W bfc_allocator.cc:511] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
        "8.00GiB ";
    const Explanation hidden = explain_text(line +
                                            "(rounded to 8589934592)requested by op \n"
                                            "W bfc_allocator.cc:522] ****____\n");
    CHECK(hidden.verdict == "unclear");
    CHECK(hidden.sentence.find("TF_CPP_MIN_LOG_LEVEL=0 before jax is imported") !=
          std::string::npos);
    CHECK(hidden.sentence.find("VMODULE") == std::string::npos);
    const Explanation tolerated = explain_text(line + "with freed_by_count=0.\n");
    CHECK(tolerated.sentence.find("TF_CPP_VMODULE=bfc_allocator=2") != std::string::npos);
    MessageScanner scanner;
    scanner.add_line(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.");
    scanner.finish();
    CHECK(scanner.messages().empty());
    CHECK(scanner.other_signs().xla == 1);
}

TEST_CASE("a line with 32000 beginnings of messages is read in one pass", "[explain]") {
    std::string line;
    for (int i = 0; i < 32000; ++i) {
        line += "out of memory. Tried to allocate ";
    }
    MessageScanner scanner;
    scanner.add_line(line);
    scanner.finish();
    CHECK(scanner.messages().empty());
    CHECK(scanner.left_out() == 32000);
}

TEST_CASE("more reserved memory than the card has is a contradiction", "[explain]") {
    const Explanation explanation = explain_text(
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 1.00 GiB total capacity; 5.00 GiB "
        "already allocated; 6.00 GiB reserved in total by PyTorch)");
    REQUIRE(explanation.contradictions.size() == 1);
    CHECK(explanation.contradictions[0].starts_with("6 GiB reserved make more than the card's"));
}

TEST_CASE("reading ends for any random text", "[explain]") {
    const std::string_view parts[] = {"out of memory. Tried to allocate",
                                      "1.00 GiB",
                                      " is free",
                                      "(GPU ",
                                      "Process ",
                                      " memory in use",
                                      "\x1b[",
                                      "[rank",
                                      "Allocator (",
                                      "ran out of memory trying to allocate ",
                                      " of size ",
                                      "InUse at ",
                                      "18446744073709551615",
                                      " ",
                                      "\n"};
    std::uint64_t random = 1;
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int i = 0; i < 30; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text += parts[(random >> 33) % std::size(parts)];
        }
        const MessageScanner scanner = scan(text);
        for (const FoundMessage& found : scanner.messages()) {
            const Explanation explanation =
                std::visit([](const auto& message) { return explain(message); }, found.message);
            CHECK_FALSE(explanation.verdict.empty());
            CHECK_FALSE(explanation.sentence.empty());
        }
    }
}

}  // namespace fragtrace::analyzer
