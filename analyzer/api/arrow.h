// Columns as structures of the Arrow C data interface.
#pragma once

#include <fragtrace/analyze.h>

#include "analyzer/export/columns.h"

namespace fragtrace::analyzer {

// Both structures own what they point to, until their `release` is called.
void export_columns(Columns table, ArrowSchema* schema, ArrowArray* array);

}  // namespace fragtrace::analyzer
