// An SQLite database that is filled from scratch.
//
// The first error is kept and everything after it is skipped, so only close() needs to be checked.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;

namespace fragtrace::analyzer {

// An address or a handle. Above 2^63-1 it is stored as text in hexadecimal.
struct SqliteAddress {
    std::uint64_t value = 0;
};

class SqliteFile {
  public:
    // The file must exist and be empty. One transaction covers everything up to close().
    explicit SqliteFile(const std::string& name);
    ~SqliteFile();
    SqliteFile(const SqliteFile&) = delete;
    SqliteFile& operator=(const SqliteFile&) = delete;

    // Runs one or more statements.
    void run(const char* statements);

    // Commits. `path` is the name of the file for the error.
    Status close(const std::string& path);

    // Numbers above 2^63-1 other than kUnknown64, stored as NULL so far.
    [[nodiscard]] std::uint64_t numbers_left_out() const { return numbers_left_out_; }

  private:
    friend class SqliteRows;
    void check(int code);

    sqlite3* database_ = nullptr;
    std::string failure_;  // empty = none
    std::uint64_t numbers_left_out_ = 0;
};

// Adds rows to one table. The table must exist when the first row is added.
class SqliteRows {
  public:
    // Both arguments must outlive this object. It must be gone before the file is closed.
    SqliteRows(SqliteFile* file, const char* table) : file_(file), table_(table) {}

    ~SqliteRows();
    SqliteRows(const SqliteRows&) = delete;
    SqliteRows& operator=(const SqliteRows&) = delete;

    // One value per column. Stored as NULL: std::nullopt, kUnknown64, and numbers above 2^63-1.
    // `const char*` is a word of this program. Other text may come from a trace, so control
    // characters and invalid UTF-8 are replaced (printable() in terminal.h).
    template <typename... Values>
    void add(const Values&... values) {
        if (!begin_row(sizeof...(values))) {
            return;
        }
        int column = 0;
        (bind(++column, values), ...);
        end_row();
    }

  private:
    bool begin_row(std::size_t columns);
    void end_row();

    template <typename Value>
    void bind(int column, const Value& value) {
        if constexpr (std::is_floating_point_v<Value>) {
            bind_real(column, value);
        } else if constexpr (std::is_unsigned_v<Value>) {
            bind_unsigned(column, value);
        } else if constexpr (std::is_integral_v<Value>) {
            bind_signed(column, value);
        } else {
            bind_text(column, value);
        }
    }

    template <typename Value>
    void bind(int column, const std::optional<Value>& value) {
        if (value) {
            bind(column, *value);
        } else {
            bind(column, std::nullopt);
        }
    }

    void bind(int column, std::nullopt_t);
    void bind(int column, SqliteAddress address);
    void bind(int column, const char* word);
    void bind_unsigned(int column, std::uint64_t value);
    void bind_signed(int column, std::int64_t value);
    void bind_real(int column, double value);
    void bind_text(int column, std::string_view text);

    SqliteFile* file_;
    const char* table_;
    sqlite3_stmt* statement_ = nullptr;
};

}  // namespace fragtrace::analyzer
