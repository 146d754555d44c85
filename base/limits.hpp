// Every bound of the program, named, with its reason. A bound that an operator may want to change
// is a configuration key whose default stands here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ars::base::limits {

using namespace std::chrono_literals;

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
inline constexpr std::size_t kGiB = 1024 * kMiB;

// --- runs -------------------------------------------------------------------------------------
inline constexpr std::uint32_t kMaxConcurrentRuns = 256;  // roots; a waiting run costs about 20 KiB
inline constexpr std::uint32_t kMaxChildRuns =
    256;  // their own pool, so children never wait for a root
inline constexpr std::uint32_t kMaxParallelChildren =
    64;  // of one run: a model in a loop must not fill the pool
inline constexpr std::uint32_t kMaxSteps = 300;  // model calls of one run
inline constexpr auto kRunTimeLimit = 3600s;     // wall time of one run
inline constexpr auto kAwaitLimit = 1800s;       // one subagent_await or task
inline constexpr std::uint32_t kMaxToolCallsPerTurn = 128;
inline constexpr auto kEventRetention = 168h;  // of a run's events, from its end on
inline constexpr std::uint32_t kRecoveryLimit =
    20;  // boots without a new record before a run is given up
inline constexpr std::uint32_t kMalformedTurnsLimit =
    3;  // turns with only unreadable calls in a row

// --- what goes into the model's context ----------------------------------------------------------
inline constexpr std::size_t kToolResultBytes =
    256 * kKiB;  // head + tail; the full text is in a file
inline constexpr std::size_t kUserQueryBytes = 1 * kMiB;

// --- commands ------------------------------------------------------------------------------------
inline constexpr auto kCommandTimeout = 180s;  // `execute` without a timeout argument
inline constexpr auto kCommandTimeoutMax = 3600s;
inline constexpr auto kDrainGrace = 200ms;  // output still in the pipe when the process has ended
inline constexpr auto kTermGrace = 2s;      // between TERM and KILL
inline constexpr auto kKillProof = 2s;      // until the tree must be empty, else the scope dies
inline constexpr std::size_t kCommandLogBytes = 64 * kMiB;  // full text kept in the log file
inline constexpr std::size_t kCommandBytes = 128 * kKiB;    // MAX_ARG_STRLEN of the kernel
inline constexpr std::size_t kStdinBytes = 16 * kMiB;
inline constexpr std::size_t kInputBytes = 1 * kMiB;  // one Process::write(), waiting to be read
inline constexpr std::size_t kPolledOutputBytes =
    1 * kMiB;  // of a started command, to be read by offset; the log file has the rest
inline constexpr std::size_t kRememberedCommands = 32;     // of a scope, after they ended,
inline constexpr std::size_t kRememberedBytes = 8 * kMiB;  // and all their output together
inline constexpr std::uint32_t kScopeProcesses = 512;      // RLIMIT_NPROC inside the scope
inline constexpr std::uint32_t kScopes = 256;
inline constexpr auto kScopeIdleRelease = 10min;
inline constexpr auto kScopeSetUp = 5s;
inline constexpr std::uint32_t kCommandsPerScope = 128;

// --- the proxy of a policy with allowed_hosts ---------------------------------------------------
inline constexpr std::size_t kAllowedHosts = 4096;                // entries of one policy
inline constexpr std::uint32_t kEgressConnectionsPerScope = 128;  // a scope can starve only itself
inline constexpr std::uint32_t kEgressConnections = 512;  // of all scopes: two descriptors each
inline constexpr std::size_t kEgressHeadBytes = 16 * kKiB;
inline constexpr std::size_t kEgressBufferBytes = 64 * kKiB;  // of each direction
inline constexpr auto kEgressHeadTimeout = 10s;
inline constexpr auto kEgressConnectTimeout = 10s;  // with the name look-up
inline constexpr auto kEgressIdleTimeout = 300s;    // no byte in either direction
inline constexpr auto kEgressLinger = 2s;           // for a client to read the last of an answer
inline constexpr std::uint32_t kEgressRefusalLines = 20;  // in the log, per scope and minute

// --- HTTP ----------------------------------------------------------------------------------------
inline constexpr std::size_t kRequestBodyBytes = 4 * kMiB;
inline constexpr std::size_t kRequestHeadBytes = 16 * kKiB;
inline constexpr std::uint32_t kConnections = 4096;
inline constexpr auto kHttpReadTimeout = 30s;
inline constexpr auto kHttpIdleTimeout = 75s;
inline constexpr auto kHttpWriteTimeout = 30s;
inline constexpr auto kSseHeartbeat = 15s;
inline constexpr std::size_t kSseBatch = 200;  // events read from the log and sent at a time
inline constexpr int kSocketUnsent =
    64 * kKiB;  // what a peer that stopped reading leaves in the kernel

// --- models --------------------------------------------------------------------------------------
inline constexpr auto kModelConnectTimeout = 10s;
inline constexpr auto kModelFirstByteTimeout = 120s;
inline constexpr auto kModelIdleTimeout =
    120s;  // between chunks: 45 s proved too short for thinking models
inline constexpr auto kModelTotalTimeout = 900s;
inline constexpr std::uint32_t kModelRetries = 2;
inline constexpr std::size_t kModelReplyBytes = 16 * kMiB;
inline constexpr std::size_t kModelErrorBodyBytes = 2 * kKiB;
inline constexpr auto kDeltaFlush = 100ms;  // deltas are gathered this long,
inline constexpr std::size_t kDeltaFlushChars =
    512;  // or until there are this many, before they are stored

// --- store ---------------------------------------------------------------------------------------
inline constexpr std::size_t kStoreMaxSize = 64 * kGiB;  // address space, sparse on disk
inline constexpr std::uint32_t kStoreReaders = 512;
inline constexpr std::size_t kStoreQueue = 8192;  // closures waiting for the writer
inline constexpr std::size_t kStoreGroup = 512;   // closures in one durable commit

// --- configuration -----------------------------------------------------------------------------
inline constexpr std::size_t kConfigFileBytes = 4 * kMiB;
inline constexpr std::size_t kConfigNodes =
    100'000;  // values of one YAML file, aliases counted in full
inline constexpr int kJsonDepth = 64;

}  // namespace ars::base::limits
