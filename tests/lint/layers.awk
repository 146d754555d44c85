# The arrows of the house. `below[room]` lists what a room may include besides itself.
BEGIN {
    below["base"] = ""
    below["fsmount"] = "base"
    below["sandbox"] = "fsmount base"
    below["runtime/store"] = "base"
    below["runtime/people"] = "runtime/store base"
    below["runtime/models"] = "base"
    below["runtime/tools"] = "sandbox fsmount base"
    below["runtime/agents"] = "runtime/tools runtime/models runtime/people runtime/store sandbox fsmount base"
    below["runtime/runs"] = "runtime/agents " below["runtime/agents"]
    below["server"] = "runtime/runs " below["runtime/runs"]

    # Doors: of these rooms, the rooms named first may include only the headers listed.
    door["sandbox>fsmount"] = "mount_plan.hpp access_plan.hpp layout.hpp tree_removal.hpp"
    door["runtime>sandbox"] = "scope.hpp outcome.hpp policy.hpp"

    # Which files may include a library: prefix of the header -> space-separated path prefixes.
    owner["yaml-cpp/"] = "base/document.cpp"
    owner["CLI/"] = "server/options.cpp"
    owner["lmdb.h"] = "runtime/store/"
    owner["seccomp.h"] = "sandbox/"
    owner["liburing.h"] = "sandbox/"
    owner["ares.h"] = "base/resolver.cpp"
    heavy_limit = 5
}

function room_of(path,   parts) {
    split(path, parts, "/")
    return parts[1] == "runtime" && parts[3] != "" ? parts[1] "/" parts[2] : parts[1]
}

function has(list, word) { return index(" " list " ", " " word " ") > 0 }

function fault(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    faults++
}

function starts_with_any(path, prefixes,   list, n, i) {
    n = split(prefixes, list, " ")
    for (i = 1; i <= n; i++) {
        if (index(path, list[i]) == 1) { return 1 }
    }
    return 0
}

function check_own(header,   to, top, key, name) {
    to = room_of(header)
    if (to == "tests" && room == "tests") { return }
    if (to == "tests") {
        fault("includes " header "; nothing includes tests: move what is shared into a room")
        return
    }
    if (!(to in below)) {
        fault("includes \"" header "\"; write the path from the root, \"<room>/<file>.hpp\"")
        return
    }
    if (room == "tests" || to == room) { return }
    if (!has(below[room], to)) {
        fault(room " includes " header "; it may include only " (below[room] == "" ? "itself" : below[room]) \
              ": move the shared part down, or give what is needed as an argument")
        return
    }
    top = room
    sub(/\/.*/, "", top)
    key = top ">" to
    name = header
    sub(/.*\//, "", name)
    if (key in door && !has(door[key], name)) {
        fault(room " includes " header "; of " to " it may include only " door[key])
    }
}

function check_library(header,   prefix) {
    # Tests may look inside with the library's own calls; product code has one door.
    if (room == "tests") { return }
    for (prefix in owner) {
        if (index(header, prefix) == 1 && !starts_with_any(FILENAME, owner[prefix])) {
            fault("includes <" header ">; only " owner[prefix] " may: use its interface instead")
        }
    }
    if (header ~ /^boost\/beast/ || header ~ /^boost\/asio\/ssl/) { heavy[FILENAME] = 1 }
}

# What compiles Beast or ssl, itself or through a header of ours, costs 12 to 26 s: count the .cpp files that do.
function check_heavy(   changed, i, file, count) {
    do {
        changed = 0
        for (i = 1; i <= edges; i++) {
            if (edge_to[i] in heavy && !(edge_from[i] in heavy)) {
                heavy[edge_from[i]] = 1
                changed = 1
            }
        }
    } while (changed)
    for (file in heavy) {
        if (file ~ /\.cpp$/) { count++ }
    }
    if (count > heavy_limit) {
        for (file in heavy) {
            if (file ~ /\.cpp$/) {
                printf "%s:1: one of %d files that compile Beast or ssl headers, and %d may; put one behind an interface\n", \
                    file, count, heavy_limit
            }
        }
        faults++
    }
}

FNR == 1 { room = room_of(FILENAME) }

/^[ \t]*#[ \t]*include[ \t]*"/ {
    header = $0
    sub(/^[^"]*"/, "", header)
    sub(/".*/, "", header)
    check_own(header)
    if (room != "tests") {
        edge_from[++edges] = FILENAME
        edge_to[edges] = header
    }
}

/^[ \t]*#[ \t]*include[ \t]*</ {
    header = $0
    sub(/^[^<]*</, "", header)
    sub(/>.*/, "", header)
    check_library(header)
}

END {
    check_heavy()
    exit faults > 0
}
