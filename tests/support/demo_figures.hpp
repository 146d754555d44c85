// The figures of the demo's CSV, computed here from its rules alone: nothing is shared with the
// programs that the scripted agents run, so a test can hold their answer against it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ars::tests {

struct DemoFigures {
    std::int64_t rows = 0;
    std::int64_t valid = 0;
    // The first reason that applies to a row.
    std::int64_t duplicate = 0;
    std::int64_t missing = 0;
    std::int64_t bad_date = 0;
    std::int64_t not_a_number = 0;
    std::int64_t not_positive = 0;

    std::int64_t total_cents = 0;
    std::map<std::string, std::int64_t> region_cents;  // "North", ...
    std::array<std::int64_t, 12> month_cents{};
    std::string best_month;     // "2024-12"
    std::string weakest_month;  // "2024-02"
    std::string change;         // first to last quarter: "+76.7 %"

    // 1234 -> "12.34"
    [[nodiscard]] static std::string money(std::int64_t cents);
    [[nodiscard]] std::int64_t month(std::string_view name) const;  // "2024-12" -> its cents
};

// Throws std::runtime_error when the file can't be read or has another header.
[[nodiscard]] DemoFigures demo_figures(const std::string& csv_path);

// What a right answer quotes and this one does not: "total revenue 15605726.19". Empty when all is
// there.
[[nodiscard]] std::vector<std::string> figures_missing_from(
    std::string_view answer, const DemoFigures& figures
);

}  // namespace ars::tests
