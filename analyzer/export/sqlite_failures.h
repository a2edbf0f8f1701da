// The tables `failures` and `culprits` of the format `sqlite`.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/export/sqlite_file.h"
#include "analyzer/export/sqlite_keys.h"

namespace fragtrace::analyzer {

void add_failures(const Analysis& analysis, const SqliteKeys& keys, SqliteFile* file);

}  // namespace fragtrace::analyzer
