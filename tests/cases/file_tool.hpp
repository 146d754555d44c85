// `ars tool` on the workspace of a case, beside the shell of its session.
#pragma once

#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <string>

namespace ars::tests {

struct Answer {
    int code = -1;  // of the process
    std::string text;
};

// The tool said no, with this code, and the process says so too.
inline testing::AssertionResult refuses(const Answer& answer, const std::string& code) {
    if (answer.code == 1 && answer.text.starts_with(code + ": ")) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "exit " << answer.code << ", said: " << answer.text;
}

class FileToolCases : public Cases {
  protected:
    Answer tool(const std::string& name, const json::object& arguments) {
        const Finished done = ars::tests::run(tool_argv(name), {}, tool_stdin(name, arguments));
        EXPECT_EQ(done.err, "");
        return {done.exit_code, done.out};
    }
    // The arguments come from standard input.
    [[nodiscard]] std::vector<std::string> tool_argv(const std::string& name) {
        std::vector<std::string> argv = Cases::tool_argv(name, {});
        *std::find(argv.begin(), argv.end(), "{}") = "-";
        return argv;
    }
    // Relative paths are meant in the workspace, which is not where the landlock tier's tools
    // start.
    [[nodiscard]] std::string tool_stdin(const std::string& name, json::object arguments) {
        const char* const key = name.ends_with("_file") ? "file_path" : "path";
        const std::string given = text(arguments, key);
        const std::string quote = given.starts_with("$'") ? "$'" : "";
        const std::string path = given.substr(quote.size());
        if (landlock() && !path.starts_with('/')) {
            arguments[key] = quote + workspace().guest(path);
        }
        return json::serialize(arguments);
    }
    Answer read(const std::string& file) { return tool("read_file", {{"file_path", file}}); }
    Answer write(const std::string& file, const std::string& content, bool overwrite = false) {
        return tool(
            "write_file", {{"file_path", file}, {"content", content}, {"overwrite", overwrite}}
        );
    }
    Answer edit(
        const std::string& file,
        const std::string& old_string,
        const std::string& new_string,
        bool all = false
    ) {
        return tool(
            "edit_file",
            {{"file_path", file},
             {"old_string", old_string},
             {"new_string", new_string},
             {"replace_all", all}}
        );
    }
    // On the host.
    [[nodiscard]] std::string path(const std::string& name) {
        return workspace().path() + "/" + name;
    }
    // A file of gem's with these bytes.
    void put(const std::string& name, const std::string& bytes) {
        workspace().write(name, bytes);
        give_to_gem(path(name));
    }
    [[nodiscard]] std::string get(const std::string& name) { return read_text(path(name)); }
};

}  // namespace ars::tests
