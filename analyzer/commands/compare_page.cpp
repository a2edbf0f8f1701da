#include "analyzer/commands/compare_page.h"

#include "analyzer/analysis/analyze.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_compare.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/support/output_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

class ComparePage {
  public:
    ComparePage(const ComparePageRequest& request, const Comparison& comparison)
        : request_(request), content_(&data_) {
        data_.comparison = compared_runs(comparison);
    }

    Result<std::string> make() {
        const auto name = [](const std::string& path) {
            return std::filesystem::path(path).filename().string();
        };
        data_.title = fmt::format("{} and {}", name(request_.path_a), name(request_.path_b));
        // The page opens with the first device: with B, the run in question.
        for (const std::size_t side : {1, 0}) {
            if (const Status added = add(side, side == 1 ? 0.5 : 1); !added) {
                return added.error();
            }
        }
        if (writer_.devices() == 0) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}, {}: no page: neither run has device memory",
                                     request_.path_a,
                                     request_.path_b)};
        }
        return writer_.finish(data_);
    }

  private:
    // The analysis is destroyed on return, because the page has then copied everything it needs.
    Status add(std::size_t side, double share) {
        const std::string& path = side == 0 ? request_.path_a : request_.path_b;
        const auto analyzed = analyze(path, request_.options);
        if (!analyzed) {
            return analyzed.error();
        }
        PageComparison& page = *data_.comparison;
        page.processes[side] = data_.processes.size();
        content_.add(**analyzed);
        for (std::size_t i = 0; i < data_.devices.size(); ++i) {
            for (PageComparedDevice& row : page.devices) {
                if (row.gpu == data_.devices[i].index) {
                    row.devices[side] = writer_.devices() + i;
                }
            }
        }
        Status written = writer_.add_devices(data_, share);
        data_.devices.clear();
        return written;
    }

    const ComparePageRequest& request_;
    PageData data_;
    PageContent content_;
    PageWriter writer_;
};

}  // namespace

Status write_compare_page(const ComparePageRequest& request, const Comparison& comparison) {
    const Result<std::string> page = ComparePage(request, comparison).make();
    return page ? write_output(request.html, *page) : Status(page.error());
}

}  // namespace fragtrace::analyzer
