// The two moments of every durable write at which a crash matters. Nothing happens there; the tests
// link a program of their own that dies in them (tests/failpoints).
#pragma once

namespace ars::store {

enum class CommitMoment : unsigned char {
    before,  // everything is written, nothing is on disk
    after,   // on disk, and nobody knows it yet
};

void at_commit(CommitMoment moment);

}  // namespace ars::store
