// A made-up training run as the data of a page, on a small caching allocator (best fit, split,
// coalesce, release and retry).
//
// It is deterministic, for tests, pictures and measurements of the page.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstddef>

namespace fragtrace::page_test {

// About `blocks` blocks. The run ends with a request that fails although enough memory is free.
analyzer::PageData synthetic_page(std::size_t blocks);
// 188 blocks of 10 MiB in segments of 20 MiB. Every other one is freed, then 1 GiB is requested.
analyzer::PageData checkerboard_page();
// Two devices. The first is the checkerboard. The second has an expandable segment, a block over
// several of its pages, a private pool and a pending block, but no failure and no card.
analyzer::PageData two_device_page();
// A job of 40 processes, two of which are complete in the file. The failed one is that of
// two_device_page(). Names are hostile, and one trace is unreadable.
analyzer::PageData job_page();
// Two runs: B is like synthetic_page() and fails. A is the same run without the blocks of one line,
// slower, and does not fail. Figures and sentences are made up.
analyzer::PageData two_run_page();
// So many blocks, all live at once in segments of 20 MiB. Later every third one is freed.
analyzer::PageData crowded_page(std::size_t blocks);

}  // namespace fragtrace::page_test
