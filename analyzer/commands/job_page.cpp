#include "analyzer/commands/job_page.h"

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/page/page_header.h"
#include "analyzer/report/page/page_ranks.h"
#include "analyzer/report/page/page_sources.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::string job_title(const JobRequest& request, const Job& job) {
    const std::string chosen = request.job_id.empty() ? "" : ", --job-id " + request.job_id;
    if (request.folder.empty()) {
        return format_counted(job.processes.size(), "process", "processes") + chosen;
    }
    const std::filesystem::path folder = std::filesystem::path(request.folder).lexically_normal();
    const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename();
    return "job " + (name.empty() || name == "." ? std::string("here") : name) + chosen;
}

class JobPage {
  public:
    JobPage(const JobRequest& request, const JobView& view, Job* job)
        : request_(request), view_(view), job_(job), content_(&data_) {}

    Result<std::string> make() {
        data_.title = job_title(request_, *job_);
        data_.bytes_to_come = bytes_of_rows();
        const std::vector<std::size_t> chosen = whole_on_page(*job_);
        for (const std::size_t at : chosen)
            to_come_ += weight_of(job_->processes[at]);
        for (const std::size_t at : chosen) {
            const Status added = add(at);
            if (!added) {
                return added.error();
            }
        }
        if (writer_.devices() == 0) {
            return Error{
                ErrorCode::kInput,
                "no page: it needs a trace that can be read, of a process that used a device; "
                "summaries are not enough"};
        }
        add_ranks(*job_, view_, places_, &data_);
        if (request_.sources) {
            add_sources(first_start_unix_ns(), {}, &data_);
        }
        return writer_.finish(data_);
    }

  private:
    // Every process may use as much of the file as it has of all blocks. Its devices need some
    // bytes even without blocks.
    static double weight_of(const ProcessSummary& process) {
        constexpr double kBlocksOfDevice = 100'000;
        return static_cast<double>(blocks_of(process)) +
               kBlocksOfDevice * static_cast<double>(process.devices.size() + 1);
    }

    // What the rows of all processes, the sentences about them and the sources need, about.
    [[nodiscard]] std::size_t bytes_of_rows() const {
        constexpr std::size_t kRowBytes = 2000;
        constexpr std::size_t kOtherBytes = 500'000;
        constexpr std::size_t kSourceBytes = 2'000'000;
        std::size_t rows = 0;
        for (const ProcessSummary& process : job_->processes)
            rows += std::max<std::size_t>(process.devices.size(), 1);
        return std::min(rows, kMostPageRanks) * kRowBytes + kOtherBytes +
               (request_.sources ? kSourceBytes : 0);
    }

    [[nodiscard]] std::uint64_t first_start_unix_ns() const {
        std::uint64_t first = 0;
        for (const ProcessSummary& process : job_->processes) {
            const std::uint64_t start = process.start_unix_ns;
            first = first == 0 || (start != 0 && start < first) ? start : first;
        }
        return first;
    }

    // The analysis is destroyed on return, because the page has then copied everything it needs as
    // text.
    Status add(std::size_t at) {
        const ProcessSummary& process = job_->processes[at];
        const auto analyzed =
            guarded(process.path, [&] { return analyze(process.path, request_.options); });
        if (!analyzed) {
            if (analyzed.error().code == ErrorCode::kUsage) {
                return analyzed.error();
            }
            job_->unreadable.push_back({process.file, analyzed.error().message});
            return Ok{};
        }
        content_.add(**analyzed);
        const double weight = weight_of(process);
        const double share = weight / to_come_;
        to_come_ -= weight;
        for (const PageDevice& device : data_.devices) {
            places_.emplace(std::pair(at, static_cast<DeviceId>(device.index)), places_.size());
        }
        Status written = writer_.add_devices(data_, share);
        data_.devices.clear();
        return written;
    }

    const JobRequest& request_;
    const JobView& view_;
    Job* job_;
    PageData data_;
    PageContent content_;
    PageWriter writer_;
    PagePlaces places_;
    double to_come_ = 0;  // the weight of the processes that are not written yet
};

}  // namespace

std::vector<std::size_t> whole_on_page(const Job& job) {
    const std::uint64_t blocks =
        job.processes.size() > kLargeJob ? kBlocksOfLargeJob : PageData().block_budget;
    return choose_whole(job, {kMostWholeProcesses, kMostWholeDevices, blocks});
}

Status write_job_page(const JobRequest& request, const JobView& view, Job* job) {
    const Result<std::string> page = JobPage(request, view, job).make();
    return page ? write_output(request.html, *page) : Status(page.error());
}

}  // namespace fragtrace::analyzer
