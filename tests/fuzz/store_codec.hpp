// What the fuzz target of the store's codec and its replay in the unit tests check for any input.
#pragma once

#include "runtime/store/codec.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace ars::store {

// Accepted bytes must be stable: decode, encode, decode gives the same encoding. Aborts otherwise.
inline void require_stable(const std::string& once, const std::string& twice) {
    if (once != twice) {
        std::abort();
    }
}

inline constexpr int kEveryDecoder = 1023;

// Gives `bytes` to every decoder; a bit for each that accepts them.
inline int codec_accepts(std::string_view bytes) {
    int mask = 0;
    const auto check = [&](int bit, auto decode, auto encode) {
        if (const auto record = decode(bytes)) {
            mask |= bit;
            const std::string once = encode(*record);
            const auto again = decode(once);
            require_stable(once, again ? encode(*again) : std::string());
        }
    };
    check(1, decode_thread, encode_thread);
    check(2, decode_message, encode_message);
    check(4, decode_call, encode_call);
    check(8, decode_checkpoint, encode_checkpoint);
    check(16, decode_event, encode_event);
    check(32, decode_event_head, encode_event_head);
    check(256, decode_request, encode_request);
    RunRecord run;
    if (decode_run_facts(bytes, run)) {
        mask |= 64;
        const std::string once = encode_run_facts(run);
        RunRecord again;
        require_stable(
            once, decode_run_facts(once, again) ? encode_run_facts(again) : std::string()
        );
    }
    if (decode_run_state(bytes, run)) {
        mask |= 128;
        const std::string once = encode_run_state(run);
        RunRecord again;
        require_stable(
            once, decode_run_state(once, again) ? encode_run_state(again) : std::string()
        );
    }
    OutboxRecord outbox;
    if (decode_outbox(bytes, outbox)) {
        mask |= 512;
        const std::string once = encode_outbox(outbox);
        OutboxRecord again;
        require_stable(once, decode_outbox(once, again) ? encode_outbox(again) : std::string());
    }
    return mask;
}

}  // namespace ars::store
