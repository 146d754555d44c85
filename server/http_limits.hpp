// Bounds of the HTTP layer as values, so that a test can make them small, and what it counts for
// /metrics.
#pragma once

#include "base/deadline.hpp"
#include "base/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ars::server {

inline constexpr std::size_t kUploadBytes =
    100 * base::limits::kMiB;  // file content of one request
inline constexpr std::size_t kUploadFiles = 50;
inline constexpr std::size_t kAttachmentBytes = 5 * base::limits::kMiB;
inline constexpr auto kUploadTimeout =
    std::chrono::minutes(10);  // kUploadBytes at 175 KiB a second
inline constexpr std::size_t kDownloadBytes = 1 * base::limits::kGiB;
inline constexpr std::size_t kFilePiece = 128 * base::limits::kKiB;  // read or written at a time
inline constexpr std::size_t kTreePage = 1000;                       // entries of one answer
inline constexpr auto kTreeRemoval =
    std::chrono::seconds(10);  // of one request: it holds a thread for file work

// Of all requests together, from their first byte until they are answered: 64 of the largest. Small
// ones are not refused for the others' sake.
inline constexpr std::size_t kAllBodiesBytes = 256 * base::limits::kMiB;
inline constexpr std::size_t kSmallBody = 64 * base::limits::kKiB;

inline constexpr auto kBlockingWait = std::chrono::minutes(30);  // of a call for its run

struct HttpLimits {
    std::size_t head_bytes = base::limits::kRequestHeadBytes;
    std::size_t body_bytes = base::limits::kRequestBodyBytes;
    std::size_t all_bodies_bytes = kAllBodiesBytes;
    std::size_t connections = base::limits::kConnections;
    base::milliseconds read_timeout = base::limits::kHttpReadTimeout;  // one request, whole
    base::milliseconds body_timeout = kUploadTimeout;  // of a body that is read in pieces, whole
    base::milliseconds idle_timeout = base::limits::kHttpIdleTimeout;    // between requests
    base::milliseconds write_timeout = base::limits::kHttpWriteTimeout;  // one write
    base::milliseconds blocking_wait = kBlockingWait;
    base::milliseconds heartbeat = base::limits::kSseHeartbeat;
};

struct HttpStats {
    std::uint64_t connections = 0;             // open now
    std::uint64_t refused_connections = 0;     // over the bound
    std::uint64_t body_bytes = 0;              // held now
    std::uint64_t streams = 0;                 // SSE readers now
    std::array<std::uint64_t, 6> responses{};  // by status / 100
};

}  // namespace ars::server
