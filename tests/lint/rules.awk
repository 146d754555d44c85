# Line rules on C++ text whose comments and literals are blanked, so that prose may name what code may not call.
BEGIN {
    max_lines = 500
    # pattern -> remedy; the call must not be part of a longer name.
    ban("tcp::resolver", "static glibc must not load name services: use runtime/models's c-ares resolver")
    ban("(getaddrinfo|gethostbyname|getnameinfo)[ \t]*\\(", "static glibc must not load name services: use runtime/models's c-ares resolver")
    ban("(getpwnam|getpwuid|getgrnam|getgrgid|initgroups)(_r)?[ \t]*\\(", "static glibc must not load name services: ids are numbers (fsmount/layout.hpp)")
    ban("system[ \t]*\\(", "no shell in the server: run commands through sandbox/scope.hpp")
    ban("popen[ \t]*\\(", "no shell in the server: run commands through sandbox/scope.hpp")
    ban("remove_all[ \t]*\\(", "it follows a link swapped in under it: remove beneath an open directory")
    ban("std::w?s?regex", "slow, recursive on input, throws: match by hand or with a bounded matcher")
    ban("setlocale[ \t]*\\(", "the program speaks UTF-8 and the C locale: nothing depends on the environment")
    ban("dlopen[ \t]*\\(", "the binary is static")
    ban("awaitable_operators", "it throws multiple_exceptions past the catch of the real one: use base::TaskGroup")
    # clang 19 does not yet keep the temporaries of a range alive (P2718).
    dead_range = "for \\(.*: .*\\)\\.(value|error)\\(\\)"
    fork = "(^|[^A-Za-z0-9_])v?fork[ \t]*\\("
}

function ban(pattern, remedy) {
    bans++
    banned[bans] = "(^|[^A-Za-z0-9_])" pattern
    remedies[bans] = remedy
}

function fault(line, text) {
    printf "%s:%d: %s\n", FILENAME, line, text
    faults++
}

function end_of_file() {
    if (last_file == "") { return }
    if (last_line > max_lines) {
        printf "%s:%d: %d lines; a file has at most %d: which noun is hiding in it?\n", last_file, max_lines + 1, last_line, max_lines
        faults++
    }
    if (last_file ~ /\.hpp$/ && !seen_pragma) {
        printf "%s:1: a header without #pragma once; add it after the opening comment\n", last_file
        faults++
    }
}

FNR == 1 {
    end_of_file()
    last_file = FILENAME
    seen_pragma = 0
    in_block = 0
    raw_end = ""
    # A test program has one thread when it forks to become somebody else.
    may_fork = FILENAME ~ /^(sandbox|tests)\//
    if (FILENAME ~ /\.hpp$/ && $0 !~ /^\/\//) {
        fault(1, "a header without an opening comment; say why the file exists")
    }
}

/^#pragma once/ { seen_pragma = 1 }

{
    last_line = FNR
    code = code_of($0)
    for (i = 1; i <= bans; i++) {
        if (code ~ banned[i]) { fault(FNR, "banned call: " remedies[i]) }
    }
    if (code ~ dead_range) {
        fault(FNR, "the range of this loop is part of a temporary that is gone in its body; name the result first")
    }
    if (code ~ fork && !may_fork) {
        fault(FNR, "banned call: fork copies a threaded process; only the scope's init does it (sandbox/), use posix_spawn")
    }
}

END {
    end_of_file()
    exit faults > 0
}
