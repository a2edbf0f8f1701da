// Reads the tables of an untrusted SQLite database.
//
// SQLite reads the file through InputFile only. It opens no other file, makes no journal, and never
// writes. Views, triggers and virtual tables of the database are never run.
#pragma once

#include "analyzer/support/input_file.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

struct sqlite3_stmt;

namespace fragtrace::analyzer {

// Whether the file begins like an SQLite database (also gzipped).
bool looks_like_sqlite(const InputFile& file);

// A row while SqliteTables::read() calls take().
class SqliteRow {
  public:
    explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

    // nullopt: no integer, or the table lacks the column.
    [[nodiscard]] std::optional<std::int64_t> number(std::size_t column) const;
    // Valid until the next row; may contain any bytes. nullopt: no text.
    [[nodiscard]] std::optional<std::string_view> text(std::size_t column) const;

  private:
    sqlite3_stmt* statement_;
};

// Not thread-safe.
class SqliteTables {
  public:
    // `file` must outlive the object.
    explicit SqliteTables(const InputFile& file);
    ~SqliteTables();
    SqliteTables(const SqliteTables&) = delete;
    SqliteTables& operator=(const SqliteTables&) = delete;

    // Why the database cannot be read (any further), without the path; empty = it can be.
    [[nodiscard]] const std::string& problem() const;

    // The columns of a table; empty: there is no such table. Something else with this name, such as
    // a view, is a problem.
    std::set<std::string> columns(std::string_view table);

    // Calls take() for each row, in the order in which they were written, until it returns false.
    // The columns keep their order; those that the table lacks are empty. Does nothing without the
    // table. `table` and `wanted` must be constants of the program.
    void read(std::string_view table,
              std::span<const std::string_view> wanted,
              const std::function<bool(const SqliteRow&)>& take);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fragtrace::analyzer
