// What the report says besides the verdict, for the page, in the words of the report.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_stacks.h"

namespace fragtrace::analyzer {

// Advice, growth, near misses, holes of a snapshot, and the lines about the device.
void add_report(const Analysis& analysis,
                const DeviceAnalysis& device,
                PageStacks* stacks,
                PageDevice* page);

// The lines about the process, and its phases.
void add_process_report(const Analysis& analysis, PageProcess* process);

}  // namespace fragtrace::analyzer
