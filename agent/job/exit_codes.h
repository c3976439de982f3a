#pragma once

namespace rankrun::agent {

// Exit codes of rankrun itself. Every other code is that of a worker.
constexpr int kExitTimedOut = 124;         // the same as timeout(1)
constexpr int kExitNoRendezvous = 201;     // too few nodes joined in time
constexpr int kExitTooFewNodes = 202;      // nodes were lost and not replaced
constexpr int kExitHang = 203;             // a worker hung
constexpr int kExitDrained = 204;          // a scheduler took nodes away; queue the job again
constexpr int kExitInternalError = 205;    // an error of rankrun itself
constexpr int kExitLostCoordinator = 206;  // the coordinator's host is silent or gone

}  // namespace rankrun::agent
