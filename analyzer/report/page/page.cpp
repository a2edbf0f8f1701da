#include "analyzer/report/page/page.h"

#include "analyzer/report/page/page_assets.h"
#include "analyzer/report/page/page_columns.h"
#include "analyzer/report/page/page_device.h"
#include "analyzer/report/page/page_header.h"
#include "analyzer/report/page/page_limits.h"
#include "analyzer/report/page/page_stack_tables.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

std::string check_tables(const PageData& data, std::size_t devices) {
    for (const PageRank& row : data.ranks) {
        if (row.device != kPageNoDevice && row.device >= devices) {
            return fmt::format("a process names device {} of {}", row.device, devices);
        }
    }
    if (data.comparison) {
        for (const PageComparedDevice& row : data.comparison->devices) {
            for (const std::size_t device : row.devices) {
                if (device != kPageNoDevice && device >= devices) {
                    return fmt::format("a run names device {} of {}", device, devices);
                }
            }
        }
    }
    for (const PageJobRow& row : data.job) {
        for (const PageNamed& part : row.parts) {
            for (const std::size_t rank : part.ranks) {
                if (rank >= data.ranks.size()) {
                    return fmt::format(
                        "a sentence names process {} of {}", rank, data.ranks.size());
                }
            }
        }
    }
    return {};
}

std::string check_devices(const PageData& data) {
    for (std::size_t i = 0; i < data.stacks.size(); ++i) {
        const PageStackNode& node = data.stacks[i];
        if ((i > 0 && node.parent >= i) || node.frame >= data.frames.size()) {
            return fmt::format("stack node {} refers to a node or frame that is not there", i);
        }
    }
    const std::size_t stacks = std::max<std::size_t>(1, data.stacks.size());
    for (const PageDevice& device : data.devices) {
        const BlockLives& blocks = device.blocks;
        const std::size_t n = blocks.size();
        if (device.process >= data.processes.size()) {
            return fmt::format("a device of process {}, which is not there", device.process);
        }
        for (const std::size_t length : {blocks.freed_ns.size(),
                                         blocks.end_ns.size(),
                                         blocks.address.size(),
                                         blocks.size_bytes.size(),
                                         blocks.requested_bytes.size(),
                                         blocks.stack.size(),
                                         blocks.stream.size()}) {
            if (length != n) return fmt::format("columns of {} and {} blocks", n, length);
        }
        for (std::size_t i = 0; i < n; ++i) {
            if (blocks.stack[i] >= stacks) return fmt::format("block {} has no such stack", i);
            if (i > 0 && blocks.start_ns[i] < blocks.start_ns[i - 1]) {
                return fmt::format("block {} starts before the one ahead of it", i);
            }
        }
        for (const SegmentLife& segment : device.segments) {
            if (segment.pool != 0 && segment.pool >= device.pools.size()) {
                return fmt::format("a segment names pool {}, but there are only {} pools",
                                   segment.pool,
                                   device.pools.size());
            }
        }
        for (const PageWhatIf& row : device.whatif) {
            const std::size_t points = row.reserved_curve.size();
            if (points != 0 && points != device.curve_times_ns.size()) {
                return fmt::format(
                    "a curve of {} points at {} times", points, device.curve_times_ns.size());
            }
        }
        for (const PageCard& card : device.cards) {
            for (const PageCulprit& culprit : card.culprits) {
                for (const std::uint32_t block : culprit.blocks) {
                    if (block >= n) return fmt::format("a card names block {} of {}", block, n);
                }
            }
        }
    }
    return {};
}

// Content security policy: the browser runs only this script and this style. Text that is
// written unescaped by mistake cannot run. Workers, which read the blocks, run the same script,
// because a local file has no other address from which to start one.
std::string content_policy() {
    const auto hash = [](const std::array<std::uint8_t, 32>& digest) {
        std::string text = "'sha256-";
        append_base64(digest, text);
        return text + "'";
    };
    return "default-src 'none'; script-src " + hash(page_script_sha256()) + "; style-src " +
           hash(page_style_sha256()) + "; worker-src blob:; base-uri 'none'; form-action 'none'";
}

Error cannot_be_drawn(const std::string& problem) {
    return {ErrorCode::kOutput, "the page cannot be drawn: " + problem};
}

}  // namespace

struct PageWriter::Written {
    std::vector<json> headers;
    std::string overviews;
    std::vector<std::string> blocks;
    std::size_t bytes = 0;  // of all devices
    StackTables stacks;
};

PageWriter::PageWriter() : written_(std::make_unique<Written>()) {}

PageWriter::~PageWriter() = default;

std::size_t PageWriter::devices() const {
    return written_->headers.size();
}

Status PageWriter::add_devices(const PageData& data, double share) {
    if (const std::string problem = check_devices(data); !problem.empty()) {
        return cannot_be_drawn(problem);
    }
    constexpr std::size_t kFrameBytes = 20'000;  // of the document around its parts
    const std::size_t used = page_style().size() + page_shell().size() + page_script().size() +
                             kFrameBytes + written_->bytes + written_->stacks.bytes() +
                             data.bytes_to_come +
                             script_safe(with_escapes_everywhere(page_header(data, {}))).size();
    auto left = static_cast<std::size_t>(
        static_cast<double>(data.byte_budget - std::min(data.byte_budget, used)) * share);
    const std::size_t stacks_before = written_->stacks.bytes();
    written_->stacks.add(data, left / 4);
    left -= std::min(left, written_->stacks.bytes() - stacks_before);
    // Half of the bytes are for all devices alike, the other half by the number of their rows. The
    // smallest device is written first, so that others can use what it does not need.
    const std::size_t count = data.devices.size();
    std::vector<double> weights;
    double weights_to_come = 0;
    for (const PageDevice& device : data.devices) {
        weights.push_back(static_cast<double>(device.blocks.size() + device.segments.size() + 1));
        weights_to_come += weights.back();
    }
    const double mean = weights_to_come / static_cast<double>(std::max<std::size_t>(count, 1));
    weights_to_come *= 2;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return weights[a] < weights[b];
    });
    std::vector<WrittenDevice> made(count);
    for (const std::size_t i : order) {
        const double weight = weights[i] + mean;
        const auto room =
            static_cast<std::size_t>(static_cast<double>(left) * weight / weights_to_come);
        weights_to_come -= weight;
        made[i] = write_device(data.devices[i],
                               devices() + i,
                               written_->stacks,
                               {room, data.block_budget, data.unit_budget});
        const std::size_t needed =
            made[i].header_bytes + made[i].overview.size() + made[i].blocks.size();
        left -= std::min(left, needed);
        written_->bytes += needed;
    }
    for (WrittenDevice& device : made) {
        written_->headers.push_back(std::move(device.header));
        written_->overviews += device.overview;
        written_->blocks.push_back(std::move(device.blocks));
    }
    return Ok{};
}

namespace {

// Replaces bytes that are not UTF-8, as the JSON of the page does.
std::string valid_text(const std::string& text) {
    const std::string valid = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return json::parse(valid).get<std::string>();
}

}  // namespace

Result<std::string> PageWriter::finish(const PageData& data) {
    if (const std::string problem = check_tables(data, devices()); !problem.empty()) {
        return cannot_be_drawn(problem);
    }
    json header = page_header(data, std::move(written_->stacks));
    header["devices"] = std::move(written_->headers);
    header = with_escapes_everywhere(std::move(header));
    std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    html += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + content_policy() + "\">\n";
    html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    html += "<title>" +
            html_escaped(with_escapes(valid_text(shortened(data.title, kMostNameBytes)))) +
            " - fragtrace</title>\n<style>";
    html += page_style();
    html += "</style>\n</head>\n";
    html += page_shell();
    // The script precedes the data, so that it can report truncated data.
    html += "<script>";
    html += page_script();
    html += "</script>\n<script type=\"application/json\" id=\"ft-header\">";
    const std::string end =
        "<script type=\"text/plain\" id=\"ft-end\">complete</script>\n</body>\n</html>\n";
    std::size_t columns = written_->overviews.size() + end.size() + 16;
    for (const std::string& elements : written_->blocks)
        columns += elements.size();
    // The rows of all lists are limited. Texts are cut only if their bytes still are too many.
    std::string text = script_safe(header);
    for (std::size_t most = 10'000;
         most >= 10 && html.size() + text.size() + columns > data.byte_budget;
         most /= 10) {
        shorten_texts(header, most);
        text = script_safe(header);
    }
    if (html.size() + text.size() + columns > data.byte_budget) {
        return cannot_be_drawn("it needs more bytes than a page may have");
    }
    html += text;
    html += "</script>\n";
    // Write the overviews of all devices first, then the blocks.
    html += written_->overviews;
    for (std::string& elements : written_->blocks)
        html += std::exchange(elements, {});
    html += end;
    return html;
}

Result<std::string> render_page(const PageData& data) {
    PageWriter writer;
    if (const Status added = writer.add_devices(data); !added) {
        return added.error();
    }
    return writer.finish(data);
}

}  // namespace fragtrace::analyzer
