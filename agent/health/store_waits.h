#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/health/worker_sample.h"
#include "base/clock.h"

// Waits at the store, assigned to the workers that wait. The store knows its clients by their
// ports, and the kernel knows which process has a connection from a port.
namespace rankrun::agent {

// A client of the store that waits for a key.
struct WaitingClient {
  std::string key;
  uint16_t port = 0;  // of the client's end
  Duration lasted{};  // as far as it was seen
};

// Records since when each client has waited for each key. Pure.
class StoreWaitTimes {
 public:
  using Entry = std::pair<std::string, uint16_t>;  // key, port
  std::vector<WaitingClient> Note(const std::vector<Entry>& waits, TimePoint now);

 private:
  std::map<Entry, TimePoint> since_;
};

// Sets `store_wait` of each sample whose process has the connection of a waiting client. Two
// hosts may use the same port: such a client is left out. Pure.
void AssignStoreWaits(const std::vector<WaitingClient>& clients,
                      std::vector<WorkerSample>& samples);

// Returns the port of this end of each connection to `remote_port` in a table of /proc/net/tcp,
// by inode. Pure.
std::map<std::string, uint16_t> ConnectionsTo(uint16_t remote_port, const std::string& table);

// Returns the ports of a process's connections among `connections`, by descriptor. Thread: any,
// not the loop's.
std::map<int, uint16_t> PortsOf(pid_t pid, const std::map<std::string, uint16_t>& connections);

// Returns those of `ports` for which a process may wait: any thread of a program may wait at the
// store, while its main thread does something else. Pure.
std::vector<uint16_t> AwaitedPorts(const std::map<int, uint16_t>& ports, const ProcessFacts& facts);

// Sets the store_ports of a sample, by its facts of /proc. Thread: any, not the loop's.
void ReadStorePorts(const std::map<std::string, uint16_t>& connections, WorkerSample& sample);

// Reads both tables of the kernel. Thread: any, not the loop's.
std::map<std::string, uint16_t> ReadConnectionsTo(uint16_t remote_port);

}  // namespace rankrun::agent
