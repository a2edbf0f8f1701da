// What the page shows of an analysis: fills PageData; page.h writes it.
#pragma once

#include "analyzer/report/analysis.h"
#include "analyzer/report/page_data.h"

namespace fragtrace::analyzer {

PageData page_content(const Analysis& analysis);

}  // namespace fragtrace::analyzer
