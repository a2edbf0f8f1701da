// The report as tables: one CSV file for each.
#include "analyzer/export/csv_tables.h"
#include "analyzer/export/formats.h"
#include "analyzer/report/json/json.h"
#include "analyzer/support/output_file.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace fragtrace::analyzer {

Status export_csv(const Analysis& analysis, const ExportOptions& options) {
    const auto document = nlohmann::ordered_json::parse(report_json(analysis));
    std::vector<NamedOutput> files;
    for (const CsvTable& table : csv_tables()) {
        files.push_back({std::string(table.name) + ".csv", csv_text(table, document)});
    }
    return write_output_folder(options.output, files);
}

}  // namespace fragtrace::analyzer
