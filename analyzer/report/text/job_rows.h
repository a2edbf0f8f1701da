// The rows of the view of a job, and which processes their sentences name. The terminal and the
// page print the same rows.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

enum class JobRowKind : std::uint8_t {
    kFailure,  // names a process that failed; has no label. The rows of this failure follow
    kHeading,  // another heading
    kRow,
    // The sentence is that of one process's report. It names no process of the job.
    kOfReport,
};

struct JobRow {
    JobRowKind kind = JobRowKind::kRow;
    std::string label = {};  // "verdict"; empty: the row goes on with the one above
    std::string text = {};   // printable
};

using JobRows = std::vector<JobRow>;

// Who reads the rows. A page has room for more, and a table of all processes.
enum class JobReader : std::uint8_t { kTerminal, kPage };

// One row; no row without a text.
JobRows view_row(const char* label, const std::string& text, JobRowKind kind = JobRowKind::kRow);

void append(JobRows rows, JobRows* to);

// A part of a sentence.
struct NamedPart {
    std::string text;
    // The processes that this part names, as indices into Job::processes; empty: it names none.
    std::vector<std::size_t> processes = {};

    bool operator==(const NamedPart&) const = default;
};

// Finds the names in sentences that name_of() and names_of() have written (job_names.h).
class ProcessNames {
  public:
    // The job must outlive this object.
    explicit ProcessNames(const Job& job);

    // The parts of the row's text, in its order. A list that was cut ("and 12 more") names the
    // processes that it lists.
    [[nodiscard]] std::vector<NamedPart> parts_of(const JobRow& row) const;

  private:
    struct Found;
    [[nodiscard]] bool is_of(const ProcessSummary& process, int generation) const;
    [[nodiscard]] std::optional<int> generation_of_list(const std::string& text,
                                                        std::size_t at) const;
    [[nodiscard]] Found name_at(const std::string& text, std::size_t at, int generation) const;
    [[nodiscard]] Found several_at(const std::string& text, std::size_t at, int generation) const;
    [[nodiscard]] Found one_of(const std::vector<std::size_t>& candidates,
                               const std::string& text,
                               std::size_t at,
                               int generation) const;

    const Job& job_;
    bool generations_;
    std::map<int, std::vector<std::size_t>> by_rank_;
    std::map<std::uint32_t, std::vector<std::size_t>> by_pid_;  // those without a rank
    std::vector<std::size_t> by_file_;                          // those without both: the first few
};

}  // namespace fragtrace::analyzer
