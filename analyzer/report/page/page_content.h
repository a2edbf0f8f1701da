// Fills PageData from analyses. page.h writes it.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_stacks.h"

namespace fragtrace::analyzer {

// Add several processes one by one. An analysis may be destroyed once it was added.
class PageContent {
  public:
    // `data` must be empty and must outlive this object.
    explicit PageContent(PageData* data) : data_(data), stacks_(data) {}

    // Appends the process and its devices. Devices that ran out of memory come first.
    void add(const Analysis& analysis);

  private:
    PageData* data_;
    PageStacks stacks_;
};

// The page of a single process.
PageData page_content(const Analysis& analysis);

}  // namespace fragtrace::analyzer
