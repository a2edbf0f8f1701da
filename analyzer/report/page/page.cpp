#include "analyzer/report/page/page.h"

#include "analyzer/report/page/page_assets.h"
#include "analyzer/report/page/page_columns.h"
#include "analyzer/report/page/page_device.h"
#include "analyzer/report/page/page_header.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

std::string check_tables(const PageData& data, std::size_t devices) {
    for (std::size_t i = 1; i < data.stacks.size(); ++i) {
        if (data.stacks[i].parent >= i || data.stacks[i].frame >= data.frames.size()) {
            return fmt::format("stack node {} refers to a node or frame that is not there", i);
        }
    }
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

// How many bytes blocks need is known only when they are written. The other columns of the device
// come first, but leave the blocks an eighth of the room.
WrittenDevice write_within(const PageDevice& device,
                           std::size_t index,
                           std::size_t block_budget,
                           std::size_t room) {
    std::size_t blocks = std::min(block_budget, device.blocks.size());
    WrittenDevice made = write_device(device, index, blocks);
    const std::size_t room_for_blocks =
        std::max(room / 8, room - std::min(room, made.overview.size()));
    while (made.blocks.size() > room_for_blocks && blocks > 0) {
        const double share =
            static_cast<double>(room_for_blocks) / static_cast<double>(made.blocks.size());
        // A little less than this share: blocks that live long need more bytes than others.
        blocks = static_cast<std::size_t>(static_cast<double>(blocks) * share * 0.97);
        made = write_device(device, index, blocks);
    }
    return made;
}

Error cannot_be_drawn(const std::string& problem) {
    return {ErrorCode::kOutput, "the page cannot be drawn: " + problem};
}

}  // namespace

struct PageWriter::Written {
    std::vector<json> headers;
    std::string overviews;
    std::vector<std::string> blocks;
    std::size_t block_bytes = 0;  // of all devices
};

PageWriter::PageWriter() : written_(std::make_unique<Written>()) {}

PageWriter::~PageWriter() = default;

std::size_t PageWriter::devices() const {
    return written_->headers.size();
}

Status PageWriter::add_devices(const PageData& data) {
    if (const std::string problem = check_devices(data); !problem.empty()) {
        return cannot_be_drawn(problem);
    }
    // Each device may use its share of the bytes that are left, by the number of its blocks. A
    // device with few of them must not lose them all.
    constexpr std::size_t kLeastBlocks = 1000;
    std::size_t blocks_to_come = 0;
    for (const PageDevice& device : data.devices)
        blocks_to_come += kLeastBlocks + device.blocks.size();
    for (const PageDevice& device : data.devices) {
        const std::size_t used = written_->block_bytes + written_->overviews.size();
        const std::size_t left = data.byte_budget - std::min(data.byte_budget, used);
        const std::size_t blocks = kLeastBlocks + device.blocks.size();
        const double share = static_cast<double>(blocks) / static_cast<double>(blocks_to_come);
        const auto room = static_cast<std::size_t>(static_cast<double>(left) * share);
        blocks_to_come -= blocks;
        WrittenDevice made = write_within(device, devices(), data.block_budget, room);
        written_->block_bytes += made.blocks.size();
        written_->headers.push_back(std::move(made.header));
        written_->overviews += made.overview;
        written_->blocks.push_back(std::move(made.blocks));
    }
    return Ok{};
}

Result<std::string> PageWriter::finish(const PageData& data) {
    if (const std::string problem = check_tables(data, devices()); !problem.empty()) {
        return cannot_be_drawn(problem);
    }
    json header = page_header(data);
    header["devices"] = std::move(written_->headers);
    std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    html += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + content_policy() + "\">\n";
    html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    html += "<title>" + html_escaped(with_escapes(data.title)) + " - fragtrace</title>\n<style>";
    html += page_style();
    html += "</style>\n</head>\n";
    html += page_shell();
    // The script precedes the data, so that it can report truncated data.
    html += "<script>";
    html += page_script();
    html += "</script>\n<script type=\"application/json\" id=\"ft-header\">";
    html += script_safe(std::move(header));
    html += "</script>\n";
    // Write the overviews of all devices first, then the blocks.
    html += written_->overviews;
    for (std::string& elements : written_->blocks)
        html += std::exchange(elements, {});
    html += "<script type=\"text/plain\" id=\"ft-end\">complete</script>\n</body>\n</html>\n";
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
