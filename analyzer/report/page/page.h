// The page: one self-contained HTML file that shows an analysis and needs no network. It has at
// most 60 MB.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <memory>
#include <string>

namespace fragtrace::analyzer {

// Writes the document device by device, so that a written device's columns can be freed.
class PageWriter {
  public:
    PageWriter();
    ~PageWriter();

    // Appends all devices of `data`, in this share of the bytes that the file has left. The caller
    // may clear them afterwards. Errors: columns of unequal length, unordered blocks, indices out
    // of range.
    Status add_devices(const PageData& data, double share = 1);
    [[nodiscard]] std::size_t devices() const;
    // Returns the document. Uses all of `data` except the devices, which must have been added
    // before. The document has at most `byte_budget` bytes. Errors: indices out of range.
    Result<std::string> finish(const PageData& data);

  private:
    struct Written;
    std::unique_ptr<Written> written_;
};

// Writes a whole document in one call.
Result<std::string> render_page(const PageData& data);

}  // namespace fragtrace::analyzer
