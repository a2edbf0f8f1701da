// What the page shows of analyses: fills PageData; page.h writes it.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_stacks.h"

namespace fragtrace::analyzer {

// Of several processes, one after the other: an analysis is not needed any more once it was added.
class PageContent {
  public:
    // `data` is empty, and must live as long as this object.
    explicit PageContent(PageData* data) : data_(data), stacks_(data) {}

    // Appends the process and its devices: first one that ran out of memory, if one did.
    void add(const Analysis& analysis);

  private:
    PageData* data_;
    PageStacks stacks_;
};

// Of one process alone.
PageData page_content(const Analysis& analysis);

}  // namespace fragtrace::analyzer
