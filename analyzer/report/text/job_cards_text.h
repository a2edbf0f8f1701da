// Cards that several processes of a job share, in text.
#pragma once

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/text/job_rows.h"

#include <string>

namespace fragtrace::analyzer {

// What the other processes on the card held at this failure; empty if the card is not shared.
std::string other_holders(const Job& job, const JobView& view, const FirstFailure& failure);

// The rows "same card".
JobRows card_rows(const Job& job, const JobView& view, JobReader reader);

}  // namespace fragtrace::analyzer
