// Secret values and how to take them out of a text: each occurrence becomes "[redacted:NAME]".
//
// A value is found as it stands, without white space around it, as JSON writes it inside a string,
// and line by line (a key file read with line numbers). What was transformed otherwise, like
// base64, and a part of a value are not found.
#pragma once

#include <boost/json/object.hpp>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::base {

// Shorter values, and shorter lines of a value, are left alone: they are words of any text.
inline constexpr std::size_t kLeastSecretBytes = 8;

class Redactor {
  public:
    // `name` stands in the texts from then on.
    void add(std::string_view name, std::string_view value);
    [[nodiscard]] bool empty() const { return forms_.empty(); }

    // No byte of any occurrence is left. Occurrences that overlap become one mark, with the name of
    // the longest. One pass over a text that holds none; linear for each form that it may hold.
    [[nodiscard]] std::string redact(std::string text) const;
    // Every text in it, at any depth; keys stay.
    void redact(boost::json::value& value) const;
    void redact(boost::json::object& object) const;

  private:
    struct Form {
        std::string name;
        std::string text;
    };
    struct Span {
        std::size_t begin;
        std::size_t end;
        std::size_t longest;  // bytes of the longest form in it
        const Form* form;     // that one
    };
    void add_form(std::string_view name, std::string_view text);
    [[nodiscard]] std::vector<Span> find(std::string_view text) const;

    static constexpr std::size_t kFilterBits = 4096;
    std::vector<Form> forms_;
    // The first bytes of each form as a number, with its place; sorted. The filter says which
    // numbers it can't hold.
    std::vector<std::pair<std::uint64_t, std::size_t>> starts_;
    std::bitset<kFilterBits> filter_;
};

}  // namespace ars::base
