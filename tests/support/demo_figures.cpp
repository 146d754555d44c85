#include "tests/support/demo_figures.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>

namespace ars::tests {

namespace {

constexpr std::string_view kHeader = "order_id,date,region,product,channel,quantity,unit_price";
constexpr std::array<std::string_view, 12> kMonths = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
};
constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

std::vector<std::string> split(const std::string& line, char at) {
    std::vector<std::string> out(1);
    for (const char c : line) {
        if (c == at) {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isdigit(c) != 0;
    });
}

int number(std::string_view digits) { return std::stoi(std::string(digits)); }

// 0 to 11, or nothing when the text is no day of 2024 in one of the three formats.
std::optional<std::size_t> month_of(const std::string& text) {
    const char separator = text.find('/') != std::string::npos   ? '/'
                           : text.find(' ') != std::string::npos ? ' '
                                                                 : '-';
    std::vector<std::string> parts = split(text, separator);
    if (parts.size() != 3) {
        return std::nullopt;
    }
    if (separator == '-') {
        std::reverse(parts.begin(), parts.end());
    }
    int month = 0;
    if (separator == ' ') {
        const auto found = std::find(kMonths.begin(), kMonths.end(), parts[1]);
        month = found == kMonths.end() ? 0 : static_cast<int>(found - kMonths.begin()) + 1;
    } else if (all_digits(parts[1])) {
        month = number(parts[1]);
    }
    if (month < 1 || month > 12 || !all_digits(parts[0]) || parts[2] != "2024") {
        return std::nullopt;
    }
    const auto index = static_cast<std::size_t>(month - 1);
    const int day = number(parts[0]);
    return day >= 1 && day <= kDays.at(index) ? std::optional(index) : std::nullopt;
}

// Hundredths of a decimal number with up to two places: "-12.3" -> -1230.
std::optional<std::int64_t> hundredths(std::string text) {
    const bool negative = text.starts_with('-');
    text.erase(0, negative ? 1 : 0);
    const std::vector<std::string> parts = split(text, '.');
    if (parts.size() > 2 || !all_digits(parts[0]) ||
        (parts.size() == 2 && (!all_digits(parts[1]) || parts[1].size() > 2))) {
        return std::nullopt;
    }
    std::int64_t value = std::stoll(parts[0]) * 100;
    if (parts.size() == 2) {
        value += std::stoll(parts[1]) * (parts[1].size() == 1 ? 10 : 1);
    }
    return negative ? -value : value;
}

std::string capitalized(std::string text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        text[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
    }
    return text;
}

void add_row(
    const std::vector<std::string>& row, std::set<std::string>& seen, DemoFigures& figures
) {
    ++figures.rows;
    if (!seen.insert(row[0]).second) {
        ++figures.duplicate;
        return;
    }
    if (row[1].empty() || row[2].empty() || row[5].empty() || row[6].empty()) {
        ++figures.missing;
        return;
    }
    const auto month = month_of(row[1]);
    if (!month) {
        ++figures.bad_date;
        return;
    }
    const auto quantity = hundredths(row[5]);
    const auto price = hundredths(row[6]);
    if (!quantity || *quantity % 100 != 0 || !price) {
        ++figures.not_a_number;
        return;
    }
    if (*quantity <= 0 || *price <= 0) {
        ++figures.not_positive;
        return;
    }
    ++figures.valid;
    const std::int64_t cents = *quantity / 100 * *price;
    figures.total_cents += cents;
    figures.region_cents[capitalized(row[2])] += cents;
    figures.month_cents.at(*month) += cents;
}

std::string month_name(std::size_t index) {
    return std::string(index < 9 ? "2024-0" : "2024-") + std::to_string(index + 1);
}

void compare_months(DemoFigures& figures) {
    const auto& cents = figures.month_cents;
    const auto index = [&cents](auto found) {
        return static_cast<std::size_t>(found - cents.begin());
    };
    figures.best_month = month_name(index(std::max_element(cents.begin(), cents.end())));
    figures.weakest_month = month_name(index(std::min_element(cents.begin(), cents.end())));
    const auto first = static_cast<double>(cents[0] + cents[1] + cents[2]);
    const auto last = static_cast<double>(cents[9] + cents[10] + cents[11]);
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f %%", (last - first) * 100 / first);
    figures.change = text;
}

// Whether `figure` stands in the text as a word of its own: "5" is not part of "15" or "5.1".
bool quotes(std::string_view text, std::string_view figure) {
    const auto joins = [](char c, char after) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(after)) != 0);
    };
    for (std::size_t at = text.find(figure); at != std::string_view::npos;
         at = text.find(figure, at + 1)) {
        const std::size_t end = at + figure.size();
        const char before = at > 0 ? text[at - 1] : ' ';
        const char after = end < text.size() ? text[end] : ' ';
        const char next = end + 1 < text.size() ? text[end + 1] : ' ';
        if (!joins(before, '0') && !joins(after, next)) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::string DemoFigures::money(std::int64_t cents) {
    const std::int64_t rest = cents % 100;
    return std::to_string(cents / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest);
}

std::int64_t DemoFigures::month(std::string_view name) const {
    return month_cents.at(static_cast<std::size_t>(number(name.substr(5)) - 1));
}

DemoFigures demo_figures(const std::string& csv_path) {
    std::ifstream file(csv_path);
    std::string line;
    if (!std::getline(file, line) || line != kHeader) {
        throw std::runtime_error(csv_path + " is not the demo's CSV");
    }
    DemoFigures figures;
    std::set<std::string> seen;
    while (std::getline(file, line)) {
        const std::vector<std::string> row = split(line, ',');
        if (row.size() != 7) {
            throw std::runtime_error(csv_path + " has a row without seven fields: " + line);
        }
        add_row(row, seen, figures);
    }
    compare_months(figures);
    return figures;
}

std::vector<std::string> figures_missing_from(std::string_view answer, const DemoFigures& figures) {
    std::vector<std::string> missing;
    const auto expect = [&](const std::string& what, const std::string& figure) {
        if (!quotes(answer, figure)) {
            missing.push_back(what + " " + figure);
        }
    };
    expect("total revenue", DemoFigures::money(figures.total_cents));
    for (const auto& [region, cents] : figures.region_cents) {
        expect("revenue of " + region, DemoFigures::money(cents));
    }
    expect("best month", figures.best_month);
    expect("its revenue", DemoFigures::money(figures.month(figures.best_month)));
    expect("weakest month", figures.weakest_month);
    expect("its revenue", DemoFigures::money(figures.month(figures.weakest_month)));
    expect("rows", std::to_string(figures.rows));
    expect("valid rows", std::to_string(figures.valid));
    expect("dirty rows", std::to_string(figures.rows - figures.valid));
    expect("duplicate", std::to_string(figures.duplicate));
    expect("missing value", std::to_string(figures.missing));
    expect("bad date", std::to_string(figures.bad_date));
    expect("not a number", std::to_string(figures.not_a_number));
    expect("not positive", std::to_string(figures.not_positive));
    return missing;
}

}  // namespace ars::tests
