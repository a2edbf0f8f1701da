#include "analyzer/api/arrow.h"

#include <array>
#include <memory>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// What the structure of one column points to. The consumer may move columns out of the table, so
// each is released on its own.
struct OwnedSchema {
    std::string name;
    std::array<char, 2> format = {};
    ArrowSchema dictionary = {};
};

struct OwnedArray {
    Column column;
    std::array<const void*, 2> buffers = {};
    // The dictionary: texts one after the other, and where each begins.
    std::string text;
    std::vector<std::int32_t> begins;
    std::array<const void*, 3> text_buffers = {};
    ArrowArray dictionary = {};
};

// The structure of a whole table: its columns, and pointers to them.
template <typename Structure>
struct OwnedTable {
    std::vector<Structure> columns;
    std::vector<Structure*> pointers;
    std::array<const void*, 1> no_nulls = {};
};

template <typename Structure>
void release_part(Structure* part) {  // its memory belongs to the structure around it
    part->release = nullptr;
}

template <typename Structure, typename Owned>
void release_column(Structure* column) {
    const auto* const owned = static_cast<Owned*>(column->private_data);
    if (column->dictionary != nullptr && column->dictionary->release != nullptr) {
        column->dictionary->release(column->dictionary);
    }
    delete owned;
    column->release = nullptr;
}

template <typename Structure>
void release_table(Structure* table) {
    auto* const owned = static_cast<OwnedTable<Structure>*>(table->private_data);
    for (Structure& column : owned->columns) {
        if (column.release != nullptr) {  // nullptr: the consumer has moved it out
            column.release(&column);
        }
    }
    delete owned;
    table->release = nullptr;
}

ArrowSchema schema_of(const Column& column) {
    auto owned = std::make_unique<OwnedSchema>();
    owned->name = column.name;
    owned->format[0] = static_cast<char>(column.type);
    ArrowSchema schema = {};
    schema.format = owned->format.data();
    schema.name = owned->name.c_str();
    schema.flags = ARROW_FLAG_NULLABLE;
    if (column.type == ColumnType::kWord) {
        owned->dictionary.format = "u";
        owned->dictionary.name = "";
        owned->dictionary.release = release_part<ArrowSchema>;
        schema.dictionary = &owned->dictionary;
    }
    schema.private_data = owned.release();
    schema.release = release_column<ArrowSchema, OwnedSchema>;
    return schema;
}

ArrowArray array_of(Column column, std::uint64_t rows) {
    auto owned = std::make_unique<OwnedArray>();
    owned->column = std::move(column);
    const Column& kept = owned->column;
    owned->buffers = {kept.nulls == 0 ? nullptr : kept.valid.data(), kept.values.data()};
    ArrowArray array = {};
    array.length = static_cast<std::int64_t>(rows);
    array.null_count = static_cast<std::int64_t>(kept.nulls);
    array.n_buffers = 2;
    array.buffers = owned->buffers.data();
    if (kept.type == ColumnType::kWord) {
        owned->begins.push_back(0);
        for (const std::string& word : kept.words) {
            owned->text += word;
            owned->begins.push_back(static_cast<std::int32_t>(owned->text.size()));
        }
        owned->text_buffers = {nullptr, owned->begins.data(), owned->text.data()};
        owned->dictionary.length = static_cast<std::int64_t>(kept.words.size());
        owned->dictionary.n_buffers = 3;
        owned->dictionary.buffers = owned->text_buffers.data();
        owned->dictionary.release = release_part<ArrowArray>;
        array.dictionary = &owned->dictionary;
    }
    array.private_data = owned.release();
    array.release = release_column<ArrowArray, OwnedArray>;
    return array;
}

template <typename Structure>
void finish_table(std::unique_ptr<OwnedTable<Structure>> owned, Structure* table) {
    for (Structure& column : owned->columns) {
        owned->pointers.push_back(&column);
    }
    table->n_children = static_cast<std::int64_t>(owned->columns.size());
    table->children = owned->pointers.data();
    table->release = release_table<Structure>;
    table->private_data = owned.release();
}

}  // namespace

void export_columns(Columns table, ArrowSchema* schema, ArrowArray* array) {
    auto schemas = std::make_unique<OwnedTable<ArrowSchema>>();
    auto arrays = std::make_unique<OwnedTable<ArrowArray>>();
    for (Column& column : table.columns) {
        schemas->columns.push_back(schema_of(column));
        arrays->columns.push_back(array_of(std::move(column), table.rows));
    }
    *schema = {};
    schema->format = "+s";
    schema->name = "";
    finish_table(std::move(schemas), schema);
    *array = {};
    array->length = static_cast<std::int64_t>(table.rows);
    array->n_buffers = 1;
    array->buffers = arrays->no_nulls.data();
    finish_table(std::move(arrays), array);
}

}  // namespace fragtrace::analyzer
