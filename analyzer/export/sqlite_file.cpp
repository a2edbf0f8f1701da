#include "analyzer/export/sqlite_file.h"

#include "analyzer/model/event.h"
#include "analyzer/support/terminal.h"

#include <fmt/format.h>
#include <limits>
#include <sqlite3.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

// The file is incomplete until it is renamed, so nothing needs to survive a crash. The cache, in
// KiB, makes the indexes faster.
constexpr const char* kSettings =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA cache_size = -65536; BEGIN;";

}  // namespace

SqliteFile::SqliteFile(const std::string& name) {
    check(sqlite3_open_v2(
        name.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    run(kSettings);
}

SqliteFile::~SqliteFile() {
    sqlite3_close(database_);
}

void SqliteFile::check(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && failure_.empty()) {
        failure_ = database_ != nullptr ? sqlite3_errmsg(database_) : sqlite3_errstr(code);
    }
}

void SqliteFile::run(const char* statements) {
    if (failure_.empty()) {
        check(sqlite3_exec(database_, statements, nullptr, nullptr, nullptr));
    }
}

Status SqliteFile::close(const std::string& path) {
    run("COMMIT");
    const int closed = sqlite3_close(database_);
    if (closed == SQLITE_OK) {
        database_ = nullptr;
    }
    check(closed);
    if (!failure_.empty()) {
        return Error{ErrorCode::kOutput,
                     fmt::format("{}: cannot write the database: {}", path, failure_)};
    }
    return Ok{};
}

SqliteRows::~SqliteRows() {
    sqlite3_finalize(statement_);
}

bool SqliteRows::begin_row(std::size_t columns) {
    if (statement_ == nullptr && file_->failure_.empty()) {
        std::string insert = fmt::format("INSERT INTO {} VALUES (", table_);
        for (std::size_t i = 0; i < columns; ++i) {
            insert += i == 0 ? "?" : ",?";
        }
        insert += ")";
        file_->check(sqlite3_prepare_v3(
            file_->database_, insert.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
    }
    return file_->failure_.empty();
}

void SqliteRows::end_row() {
    file_->check(sqlite3_step(statement_));
    sqlite3_reset(statement_);
}

void SqliteRows::bind(int column, std::nullopt_t) {
    sqlite3_bind_null(statement_, column);
}

void SqliteRows::bind(int column, SqliteAddress address) {
    if (address.value <= kLargest) {
        bind_unsigned(column, address.value);
    } else {
        bind_text(column, fmt::format("{:#x}", address.value));
    }
}

void SqliteRows::bind(int column, const char* word) {
    sqlite3_bind_text(statement_, column, word, -1, SQLITE_STATIC);
}

void SqliteRows::bind_unsigned(int column, std::uint64_t value) {
    if (value > kLargest) {
        file_->numbers_left_out_ += value != kUnknown64 ? 1 : 0;
        bind(column, std::nullopt);
    } else {
        bind_signed(column, static_cast<std::int64_t>(value));
    }
}

void SqliteRows::bind_signed(int column, std::int64_t value) {
    sqlite3_bind_int64(statement_, column, value);
}

void SqliteRows::bind_real(int column, double value) {
    sqlite3_bind_double(statement_, column, value);
}

void SqliteRows::bind_text(int column, std::string_view text) {
    const std::string safe = printable(text);
    file_->check(sqlite3_bind_text64(
        statement_, column, safe.data(), safe.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

}  // namespace fragtrace::analyzer
