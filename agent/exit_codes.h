#pragma once

namespace rankrun::agent {

// rankrun's own endings; the others are those of the workers.
constexpr int kExitTimedOut = 124;         // as timeout(1) has it
constexpr int kExitNoRendezvous = 201;     // the nodes did not come in time
constexpr int kExitTooFewNodes = 202;      // nodes were lost, and none came instead
constexpr int kExitHang = 203;             // a worker hung
constexpr int kExitDrained = 204;          // a scheduler took nodes away: to be queued again
constexpr int kExitInternalError = 205;    // rankrun's own fault
constexpr int kExitLostCoordinator = 206;  // its host is silent or gone

}  // namespace rankrun::agent
