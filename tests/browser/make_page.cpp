// make_page KIND OUTPUT: writes a page of made-up data.
//
// KIND is "checkerboard", "two" (devices), "runs" (two that are compared), "job" (of 40 processes),
// "crowd" (of live blocks), "shares" (of holes), "screens" (first screens) or a number of blocks.
// "private-pools" and "expandable" are pages of a trace. For them OUTPUT.moments.json has the
// recorded states.
#include "analyzer/report/page/page.h"
#include "analyzer/support/output_file.h"
#include "recorded.h"
#include "synthetic.h"
#include "synthetic_held.h"
#include "synthetic_screens.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    using namespace fragtrace;
    const std::string kind = argc < 3 ? "" : argv[1];
    const std::uint64_t blocks = std::strtoull(kind.c_str(), nullptr, 10);
    const std::vector<std::string> kinds = {"checkerboard",
                                            "two",
                                            "runs",
                                            "job",
                                            "crowd",
                                            "shares",
                                            "screens",
                                            "private-pools",
                                            "expandable"};
    if (blocks == 0 && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
        std::fprintf(
            stderr,
            "usage: make_page "
            "checkerboard|two|runs|job|crowd|shares|screens|private-pools|expandable|BLOCKS "
            "OUTPUT [BLOCKS [SEGMENTS]]\n");
        return 2;
    }
    analyzer::PageData data =
        kind == "checkerboard" ? page_test::checkerboard_page()
        : kind == "two"        ? page_test::two_device_page()
        : kind == "runs"       ? page_test::two_run_page()
        : kind == "shares"     ? page_test::shares_page()
        : kind == "screens"    ? page_test::screens_page()
        : kind == "job"        ? page_test::job_page()
        : kind == "private-pools" || kind == "expandable"
            ? page_test::recorded_page(kind == "expandable", std::string(argv[2]) + ".moments.json")
        : kind == "crowd" ? page_test::crowded_page(300'000)
                          : page_test::synthetic_page(blocks);
    if (data.class_words.empty()) {
        data.class_words = {{"exact", "as it would have been"},
                            {"at least", "this or more"},
                            {"estimate", "something was assumed"}};
    }
    for (analyzer::PageDevice& device : data.devices) {
        for (const analyzer::PageWord& one : data.class_words) {
            device.whatif_classes.push_back({one.word, one.meaning});
        }
    }
    if (argc > 3) data.block_budget = std::strtoull(argv[3], nullptr, 10);
    if (argc > 4) data.unit_budget = std::strtoull(argv[4], nullptr, 10);
    const auto began = std::chrono::steady_clock::now();
    const auto page = analyzer::render_page(data);
    const analyzer::Status status =
        page ? analyzer::write_output(argv[2], *page) : analyzer::Status(page.error());
    if (!status) {
        std::fprintf(stderr, "make_page: %s\n", status.error().message.c_str());
        return 2;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("%zu blocks, written in %.3f s\n", data.devices[0].blocks.size(), took.count());
    return 0;
}
