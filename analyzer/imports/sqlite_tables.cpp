#include "analyzer/imports/sqlite_tables.h"

#include "analyzer/support/byte_stream.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <sqlite3.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
// Limits. Real exports stay far below them.
constexpr int kMostValueBytes = 1 << 20;
constexpr std::int64_t kMostSchemaBytes = 64 << 20;
constexpr int kMostColumns = 200;
constexpr int kStepsPerCheck = 1000;
// SQLite's steps per byte of the file: a row needs less than one step per byte.
constexpr std::uint64_t kStepsPerByte = 16;
constexpr std::uint64_t kFreeSteps = 10'000'000;

// ---- a file system of one file, for SQLite
// --------------------------------------------------------

struct OpenFile : sqlite3_file {
    const InputFile* input;
    std::int64_t* budget_bytes;  // what may still be read
};

struct Source {
    const InputFile* input;
    std::int64_t budget_bytes;
};

int close_file(sqlite3_file* /*file*/) {
    return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* data, int size_bytes, sqlite3_int64 offset) {
    auto* const open = static_cast<OpenFile*>(file);
    *open->budget_bytes -= size_bytes;
    if (*open->budget_bytes < 0 || size_bytes < 0 || offset < 0) {
        return SQLITE_IOERR_READ;
    }
    const auto wanted = static_cast<std::size_t>(size_bytes);
    const std::size_t done = open->input->read_at(static_cast<std::uint64_t>(offset), data, wanted);
    if (done < wanted) {
        std::memset(static_cast<char*>(data) + done, 0, wanted - done);
        return SQLITE_IOERR_SHORT_READ;
    }
    return SQLITE_OK;
}

int write_file(sqlite3_file* /*file*/,
               const void* /*data*/,
               int /*size*/,
               sqlite3_int64 /*offset*/) {
    return SQLITE_READONLY;
}

int truncate_file(sqlite3_file* /*file*/, sqlite3_int64 /*size*/) {
    return SQLITE_READONLY;
}

int sync_file(sqlite3_file* /*file*/, int /*flags*/) {
    return SQLITE_OK;
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
    *size = static_cast<sqlite3_int64>(static_cast<OpenFile*>(file)->input->size());
    return SQLITE_OK;
}

int lock_file(sqlite3_file* /*file*/, int /*lock*/) {
    return SQLITE_OK;
}

int check_lock(sqlite3_file* /*file*/, int* reserved) {
    *reserved = 0;
    return SQLITE_OK;
}

int control_file(sqlite3_file* /*file*/, int /*operation*/, void* /*argument*/) {
    return SQLITE_NOTFOUND;
}

int sector_bytes(sqlite3_file* /*file*/) {
    return 4096;
}

// Immutable: SQLite looks for no journal and no write-ahead log.
int device_traits(sqlite3_file* /*file*/) {
    return SQLITE_IOCAP_IMMUTABLE;
}

constexpr sqlite3_io_methods methods_of_file() {
    sqlite3_io_methods methods = {};
    methods.iVersion = 1;
    methods.xClose = close_file;
    methods.xRead = read_file;
    methods.xWrite = write_file;
    methods.xTruncate = truncate_file;
    methods.xSync = sync_file;
    methods.xFileSize = size_of_file;
    methods.xLock = lock_file;
    methods.xUnlock = lock_file;
    methods.xCheckReservedLock = check_lock;
    methods.xFileControl = control_file;
    methods.xSectorSize = sector_bytes;
    methods.xDeviceCharacteristics = device_traits;
    return methods;
}

constexpr sqlite3_io_methods kMethods = methods_of_file();

int open_file(
    sqlite3_vfs* system, const char* /*name*/, sqlite3_file* file, int flags, int* out_flags) {
    auto* const open = static_cast<OpenFile*>(file);
    open->pMethods = nullptr;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
        return SQLITE_CANTOPEN;
    }
    auto* const source = static_cast<Source*>(system->pAppData);
    open->pMethods = &kMethods;
    open->input = source->input;
    open->budget_bytes = &source->budget_bytes;
    if (out_flags != nullptr) {
        *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
    }
    return SQLITE_OK;
}

int delete_file(sqlite3_vfs* /*system*/, const char* /*name*/, int /*sync*/) {
    return SQLITE_IOERR_DELETE;
}

int access_file(sqlite3_vfs* /*system*/, const char* /*name*/, int /*flags*/, int* result) {
    *result = 0;
    return SQLITE_OK;
}

int full_name(sqlite3_vfs* /*system*/, const char* name, int room, char* result) {
    sqlite3_snprintf(room, result, "%s", name);
    return SQLITE_OK;
}

int random_bytes(sqlite3_vfs* /*system*/, int size, char* result) {
    std::memset(result, 0, static_cast<std::size_t>(size));
    return size;
}

int sleep_for(sqlite3_vfs* /*system*/, int micros) {
    return micros;
}

int time_of_day(sqlite3_vfs* /*system*/, double* days) {
    *days = 0;
    return SQLITE_OK;
}

int last_error(sqlite3_vfs* /*system*/, int /*room*/, char* /*text*/) {
    return 0;
}

std::string quoted(std::string_view name) {
    return fmt::format("\"{}\"", name);
}

}  // namespace

struct SqliteTables::State {
    Source source = {};
    std::string system_name;
    sqlite3_vfs system = {};
    sqlite3* database = nullptr;
    std::string problem;
    std::uint64_t checks_left = 0;

    static int check_progress(void* state) {
        auto* const self = static_cast<State*>(state);
        return self->checks_left == 0 || --self->checks_left == 0 ? 1 : 0;
    }

    void fail(const std::string& what) {
        if (problem.empty()) {
            problem = what;
        }
    }

    void fail_as_sqlite_says() {
        const int code = sqlite3_errcode(database);
        fail(code == SQLITE_INTERRUPT  ? "takes more steps to read than a file of its size can need"
             : source.budget_bytes < 0 ? "has more than 64 MiB of table definitions"
             : code == SQLITE_TOOBIG   ? "has a value longer than 1 MiB"
                                       : fmt::format("cannot be read as an SQLite database ({})",
                                                   printable(sqlite3_errmsg(database))));
    }

    // Calls take() for each row of a query, until it returns false.
    void run(const std::string& query,
             std::string_view name,
             const std::function<bool(sqlite3_stmt*)>& take) {
        if (!problem.empty()) {
            return;
        }
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr) != SQLITE_OK ||
            (!name.empty() &&
             sqlite3_bind_text(
                 statement, 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC) !=
                 SQLITE_OK)) {
            fail_as_sqlite_says();
            sqlite3_finalize(statement);
            return;
        }
        int result = SQLITE_OK;
        while ((result = sqlite3_step(statement)) == SQLITE_ROW && take(statement)) {
        }
        if (result != SQLITE_DONE && result != SQLITE_ROW) {
            fail_as_sqlite_says();
        }
        sqlite3_finalize(statement);
    }
};

bool looks_like_sqlite(const InputFile& file) {
    ByteStream stream(file);
    return stream.require(kMagic.size()) &&
           std::memcmp(stream.data(), kMagic.data(), kMagic.size()) == 0;
}

std::optional<std::int64_t> SqliteRow::number(std::size_t column) const {
    const auto at = static_cast<int>(column);
    return sqlite3_column_type(statement_, at) == SQLITE_INTEGER
               ? std::optional<std::int64_t>(sqlite3_column_int64(statement_, at))
               : std::nullopt;
}

std::optional<std::string_view> SqliteRow::text(std::size_t column) const {
    const auto at = static_cast<int>(column);
    if (sqlite3_column_type(statement_, at) != SQLITE_TEXT) {
        return std::nullopt;
    }
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    return text == nullptr
               ? std::nullopt
               : std::optional(std::string_view(
                     text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, at))));
}

SqliteTables::SqliteTables(const InputFile& file) : state_(std::make_unique<State>()) {
    static std::atomic<unsigned> files = 0;
    State& state = *state_;
    std::uint8_t magic[2] = {};
    if (file.read_at(0, magic, sizeof magic) == sizeof magic && magic[0] == 0x1f) {
        state.fail("is compressed. Decompress it first (gunzip)");
        return;
    }
    state.source = {.input = &file, .budget_bytes = kMostSchemaBytes};
    state.checks_left = (kFreeSteps + kStepsPerByte * file.size()) / kStepsPerCheck;
    state.system_name = fmt::format("fragtrace-input-{}", ++files);
    state.system.iVersion = 1;
    state.system.szOsFile = sizeof(OpenFile);
    state.system.mxPathname = 64;
    state.system.zName = state.system_name.c_str();
    state.system.pAppData = &state.source;
    state.system.xOpen = open_file;
    state.system.xDelete = delete_file;
    state.system.xAccess = access_file;
    state.system.xFullPathname = full_name;
    state.system.xRandomness = random_bytes;
    state.system.xSleep = sleep_for;
    state.system.xCurrentTime = time_of_day;
    state.system.xGetLastError = last_error;
    if (sqlite3_vfs_register(&state.system, 0) != SQLITE_OK ||
        sqlite3_open_v2("input",
                        &state.database,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                        state.system_name.c_str()) != SQLITE_OK) {
        state.fail("cannot be opened as an SQLite database");
        return;
    }
    sqlite3* const database = state.database;
    for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
        sqlite3_db_config(database, option, value, nullptr);
    }
    for (const auto& [limit, value] : {std::pair{SQLITE_LIMIT_LENGTH, kMostValueBytes},
                                       {SQLITE_LIMIT_COLUMN, kMostColumns},
                                       {SQLITE_LIMIT_EXPR_DEPTH, 20},
                                       {SQLITE_LIMIT_ATTACHED, 0},
                                       {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                       {SQLITE_LIMIT_WORKER_THREADS, 0}}) {
        sqlite3_limit(database, limit, value);
    }
    sqlite3_progress_handler(database, kStepsPerCheck, State::check_progress, &state);
    const auto ignore = [](sqlite3_stmt*) { return true; };
    state.run("PRAGMA cell_size_check = ON", {}, ignore);
    state.run("PRAGMA temp_store = MEMORY", {}, ignore);
    state.run("PRAGMA cache_size = -8192", {}, ignore);
    state.run("SELECT count(*) FROM sqlite_master", {}, ignore);
    if (state.problem.empty()) {
        state.source.budget_bytes = std::int64_t{1} << 62;
    }
}

SqliteTables::~SqliteTables() {
    sqlite3_close(state_->database);
    if (state_->system.zName != nullptr) {
        sqlite3_vfs_unregister(&state_->system);
    }
}

const std::string& SqliteTables::problem() const {
    return state_->problem;
}

std::set<std::string> SqliteTables::columns(std::string_view table) {
    std::set<std::string> columns;
    bool found = false;
    bool ordinary = true;
    // Views and virtual tables have no page of their own.
    state_->run(
        "SELECT type = 'table' AND rootpage > 0 FROM sqlite_master "
        "WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
        table,
        [&](sqlite3_stmt* row) {
            found = true;
            ordinary = ordinary && sqlite3_column_int(row, 0) == 1;
            return true;
        });
    if (found && ordinary) {
        state_->run(
            fmt::format("PRAGMA table_xinfo({})", quoted(table)), {}, [&](sqlite3_stmt* row) {
                // A generated column has an expression of the file.
                ordinary = ordinary && sqlite3_column_int(row, 6) == 0;
                const auto name = SqliteRow(row).text(1);
                columns.emplace(name.value_or(std::string_view()));
                return true;
            });
    }
    if (!ordinary) {
        state_->fail(fmt::format("{} in it is not an ordinary table", table));
    }
    return state_->problem.empty() ? columns : std::set<std::string>();
}

void SqliteTables::read(std::string_view table,
                        std::span<const std::string_view> wanted,
                        const std::function<bool(const SqliteRow&)>& take) {
    const std::set<std::string> there = columns(table);
    if (there.empty()) {
        return;
    }
    std::string query = "SELECT ";
    for (const std::string_view column : wanted) {
        query += there.contains(std::string(column)) ? quoted(column) + ", " : "NULL, ";
    }
    query += fmt::format("rowid FROM {}", quoted(table));
    const auto rowid = static_cast<int>(wanted.size());
    bool any = false;
    std::int64_t last = 0;
    // In a sound table the row numbers ascend. Damaged pages that refer to one page many times
    // would repeat them.
    state_->run(query, {}, [&](sqlite3_stmt* row) {
        const std::int64_t now = sqlite3_column_int64(row, rowid);
        if (any && now <= last) {
            state_->fail(fmt::format("its table {} is damaged", table));
            return false;
        }
        any = true;
        last = now;
        return take(SqliteRow(row));
    });
}

}  // namespace fragtrace::analyzer
