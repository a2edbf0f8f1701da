// A made-up training run on a small caching allocator (best fit, split, coalesce, release and
// retry), as the data of a page. Deterministic; for tests, pictures and measurements of the page.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstddef>

namespace fragtrace::page_test {

// About `blocks` blocks; the run ends with a request that fails although enough is free.
analyzer::PageData synthetic_page(std::size_t blocks);
// 188 blocks of 10 MiB in segments of 20 MiB, every other one freed, then 1 GiB is asked for.
analyzer::PageData checkerboard_page();
// Two devices: the checkerboard, and one with an expandable segment, a block over several of its
// pages, a private pool, a pending block, and neither a failure nor a card.
analyzer::PageData two_device_page();
// A job of 40 processes, of which two are in the file whole: the failed one is that of
// two_device_page(); names are hostile, and one trace could not be read.
analyzer::PageData job_page();
// So many blocks, all alive at once in segments of 20 MiB; later every third is freed.
analyzer::PageData crowded_page(std::size_t blocks);

}  // namespace fragtrace::page_test
