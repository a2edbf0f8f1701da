// The tables, indexes and views of the format `sqlite`. docs/sqlite.md describes them.
#pragma once

namespace fragtrace::analyzer {

// Goes up whenever a column or a view is removed or changes its meaning (PRAGMA user_version).
inline constexpr int kSqliteSchemaVersion = 1;

extern const char* const kSqliteTables;

// Run it when all rows are there.
extern const char* const kSqliteIndexesAndViews;

}  // namespace fragtrace::analyzer
