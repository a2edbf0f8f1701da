// Finds a process's place in its job in the header and the facts of its trace.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/job_place.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// Header and facts are untrusted. The rank comes from the environment, unless NCCL made a
// communicator that is at least as large as the world that the environment names.
JobPlace job_place(const TraceHeader& header, const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
