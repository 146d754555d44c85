# skipped.awk NAMES LASTTESTLOG: how many of the sandbox tests named in the first file ran, and why the others did not,
# read from CTest's own log. Fails when not one of those that need a live sandbox ran.
FNR == NR {
    wanted[$0] = 1
    next
}

# "12/300 Test: Scope.KillsTheTree"
/^[0-9]+\/[0-9]+ Test: / {
    name = $0
    sub(/^[0-9]+\/[0-9]+ Test: /, "", name)
    reason = ""
    take = 0
    next
}

# "tests/unit/sandbox/scope_test.cpp:41: Skipped", then the reason on the next line.
/: Skipped$/ {
    take = 1
    next
}
take {
    reason = $0
    take = 0
}

/^Test (Passed|Failed|Skipped)\.$/ {
    if (name in wanted) {
        if ($2 == "Skipped.") {
            skipped++
            reasons[reason == "" ? "no reason given" : reason]++
        } else {
            ran++
        }
    }
    name = ""
}

END {
    printf "sandbox tests: %d ran, %d skipped\n", ran, skipped
    for (reason in reasons) { printf "  %d skipped: %s\n", reasons[reason], reason }
    if (ran == 0) {
        print "dev: no test that needs a live sandbox ran, so nothing is known about it here; " \
              "see `build/ars doctor` for what this host lacks" > "/dev/stderr"
        exit 1
    }
}
