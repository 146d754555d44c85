# skipped.awk -v what=sandbox NAMES LASTTESTLOG: how many of the tests named in the first file ran, passed and failed,
# and why the others did not run, read from CTest's own log. Fails when not one of them ran.
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

/^Test (Passed|Failed|Skipped|Timeout)\.$/ {
    if (name in wanted) {
        if ($2 == "Skipped.") {
            skipped++
            reasons[reason == "" ? "no reason given" : reason]++
        } else {
            ran++
            failed += ($2 != "Passed.")
        }
    }
    name = ""
}

END {
    printf "%s tests: %d ran, %d passed, %d failed, %d skipped\n", what, ran, ran - failed, failed, skipped
    for (reason in reasons) { printf "  %d skipped: %s\n", reasons[reason], reason }
    if (ran == 0) {
        printf "dev: no %s test that needs a live sandbox ran, so nothing is known about it here; " \
               "see `build/ars doctor` for what this host lacks\n", what > "/dev/stderr"
        exit 1
    }
}
