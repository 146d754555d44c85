# Coroutine lambdas. A lambda object dies at the end of the statement that made it, its captures with it, while the
# coroutine it started lives on: so no lambda with captures may be a coroutine, and none may be written inside a co_await
# statement. Works on the text of whole files, comments and literals blanked.

function fault(line, text) {
    printf "%s:%d: %s\n", file, line, text
    faults++
}

function is_word_char(c) { return c ~ /[A-Za-z0-9_]/ }

# After a word: is a lambda's body being awaited in, or does a co_await statement begin?
function end_word() {
    if (word ~ /^co_(await|return|yield)$/) {
        if (bodies > 0 && body_captures[bodies] && !body_told[bodies]) {
            fault(body_line[bodies], "a lambda with captures is a coroutine; make it a function with parameters")
            body_told[bodies] = 1
        }
        if (word == "co_await") { awaiting = 1 }
    }
    if (word != "") { last_word = word }
    word = ""
}

# A "[" at `i`: when it opens a lambda, notes it and returns the place of its "]"; else returns `i`.
function open_bracket(i,   j, nest, c, inside, after) {
    if (substr(text, i + 1, 1) == "[") { return i + 1 }
    if (last ~ /[)\]]/ || (is_word_char(last) && last_word !~ /^(return|co_return|co_await|co_yield|else)$/)) { return i }
    nest = 1
    for (j = i + 1; j <= size && nest > 0; j++) {
        c = substr(text, j, 1)
        if (c == "[") { nest++ }
        if (c == "]") { nest-- }
    }
    inside = substr(text, i + 1, j - i - 2)
    after = substr(text, j, 80)
    sub(/^[ \t\n]+/, "", after)
    if (after !~ /^([({<]|mutable|noexcept|->)/) { return i }
    pending = 1
    pending_parens = parens
    pending_line = line
    pending_captures = inside ~ /[^ \t\n]/
    if (awaiting && pending_captures) {
        fault(line, "a lambda with captures inside a co_await statement; name it in a statement before")
    }
    line += gsub(/\n/, "\n", inside)
    return j - 1
}

function scan_file(   i, c) {
    size = length(text)
    line = 1
    bodies = 0; braces = 0; parens = 0; pending = 0; awaiting = 0; word = ""; last = ""; last_word = ""
    for (i = 1; i <= size; i++) {
        c = substr(text, i, 1)
        if (is_word_char(c)) {
            word = word c
            last = c
            continue
        }
        end_word()
        if (c == "\n") { line++; continue }
        if (c == " " || c == "\t") { continue }
        if (c == "[") {
            i = open_bracket(i)
        } else if (c == "(") {
            parens++
        } else if (c == ")") {
            parens--
        } else if (c == "{") {
            braces++
            awaiting = 0
            if (pending && parens == pending_parens) {
                bodies++
                body_braces[bodies] = braces
                body_captures[bodies] = pending_captures
                body_line[bodies] = pending_line
                body_told[bodies] = 0
                pending = 0
            }
        } else if (c == "}") {
            if (bodies > 0 && body_braces[bodies] == braces) { bodies-- }
            braces--
            awaiting = 0
        } else if (c == ";") {
            awaiting = 0
        }
        last = c
    }
}

FNR == 1 {
    if (file != "") { scan_file() }
    file = FILENAME
    text = ""
    in_block = 0
    raw_end = ""
}

{ text = text ($0 ~ /^[ \t]*#/ ? "" : code_of($0)) "\n" }

END {
    if (file != "") { scan_file() }
    exit faults > 0
}
