# C++ lines without their comments and literals, shared by the rules.

# The code of one line: literals become "" and comments go. `in_block` and `raw_end` carry over lines.
function code_of(line,   out, c, two, i, n, rest, at) {
    out = ""
    n = length(line)
    i = 1
    while (i <= n) {
        if (raw_end != "") {
            at = index(substr(line, i), raw_end)
            if (at == 0) { return out }
            i += at - 1 + length(raw_end)
            raw_end = ""
            continue
        }
        if (in_block) {
            at = index(substr(line, i), "*/")
            if (at == 0) { return out }
            i += at + 1
            in_block = 0
            continue
        }
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (two == "//") { return out }
        if (two == "/*") {
            in_block = 1
            i += 2
            continue
        }
        if (c == "R" && substr(line, i + 1, 1) == "\"" && out !~ /[A-Za-z0-9_]$/) {
            rest = substr(line, i + 2)
            at = index(rest, "(")
            raw_end = ")" substr(rest, 1, at - 1) "\""
            i += 2 + at
            out = out "\"\""
            continue
        }
        if (c == "\"") {
            i++
            while (i <= n && substr(line, i, 1) != "\"") { i += substr(line, i, 1) == "\\" ? 2 : 1 }
            i++
            out = out "\"\""
            continue
        }
        # A quote between digits is a separator: 500'000.
        if (c == "'" && out !~ /[0-9a-fA-F]$/) {
            i++
            while (i <= n && substr(line, i, 1) != "'") { i += substr(line, i, 1) == "\\" ? 2 : 1 }
            i++
            out = out "' '"
            continue
        }
        out = out c
        i++
    }
    return out
}
