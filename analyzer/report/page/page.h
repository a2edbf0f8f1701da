// The page: one self-contained HTML file that draws an analysis, without network.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <memory>
#include <string>

namespace fragtrace::analyzer {

// The document, written device by device: what is written need not be kept as columns.
class PageWriter {
  public:
    PageWriter();
    ~PageWriter();

    // Writes all devices of `data`, behind those written before; they can be cleared afterwards.
    // Errors: columns of unequal length, blocks out of order, indices out of range.
    Status add_devices(const PageData& data);
    [[nodiscard]] std::size_t devices() const;
    // With everything but the devices, which must have been added. Errors: indices out of range.
    Result<std::string> finish(const PageData& data);

  private:
    struct Written;
    std::unique_ptr<Written> written_;
};

// All at once.
Result<std::string> render_page(const PageData& data);

}  // namespace fragtrace::analyzer
