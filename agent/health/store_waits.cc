#include "agent/health/store_waits.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "agent/process/descendants.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxKey = 200;  // in characters

// Returns the port of an address "0100007F:1F90".
uint16_t PortIn(const std::string& address) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos) return 0;
  return static_cast<uint16_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 16));
}

}  // namespace

std::vector<WaitingClient> StoreWaitTimes::Note(const std::vector<Entry>& waits, TimePoint now) {
  std::map<Entry, TimePoint> before = std::exchange(since_, {});
  std::vector<WaitingClient> clients;
  for (const Entry& wait : waits) {
    auto known = before.find(wait);
    TimePoint since = known == before.end() ? now : known->second;
    if (!since_.try_emplace(wait, since).second) continue;
    clients.push_back({OneLine(wait.first, kMaxKey), wait.second, now - since});
  }
  return clients;
}

void AssignStoreWaits(const std::vector<WaitingClient>& clients,
                      std::vector<WorkerSample>& samples) {
  if (clients.empty()) return;
  std::unordered_map<uint16_t, WorkerSample*> owners;  // null: there are several
  for (WorkerSample& sample : samples) {
    for (uint16_t port : sample.store_ports) {
      WorkerSample*& owner = owners.try_emplace(port, &sample).first->second;
      if (owner != &sample) owner = nullptr;
    }
  }
  for (const WaitingClient& client : clients) {
    auto found = owners.find(client.port);
    WorkerSample* owner = found == owners.end() ? nullptr : found->second;
    if (owner == nullptr) continue;
    bool is_longest = !owner->store_wait || owner->store_wait->lasted < client.lasted;
    if (is_longest) owner->store_wait = StoreWait{client.key, client.lasted};
  }
}

std::map<std::string, uint16_t> ConnectionsTo(uint16_t remote_port, const std::string& table) {
  std::map<std::string, uint16_t> connections;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user;
    fields >> timeout >> inode;
    if (fields && PortIn(remote) == remote_port && inode != "0") connections[inode] = PortIn(local);
  }
  return connections;
}

std::map<std::string, uint16_t> ReadConnectionsTo(uint16_t remote_port) {
  auto connections = ConnectionsTo(remote_port, ReadOfProcess(getpid(), "net/tcp"));
  connections.merge(ConnectionsTo(remote_port, ReadOfProcess(getpid(), "net/tcp6")));
  return connections;
}

std::vector<uint16_t> AwaitedPorts(const std::map<int, uint16_t>& ports,
                                   const ProcessFacts& facts) {
  std::vector<uint16_t> awaited;
  for (const auto& [descriptor, port] : ports) {
    const bool may_wait =
        !facts.descriptors || std::ranges::count(*facts.descriptors, descriptor) > 0;
    if (may_wait) awaited.push_back(port);
  }
  return awaited;
}

std::map<int, uint16_t> PortsOf(pid_t pid, const std::map<std::string, uint16_t>& connections) {
  std::map<int, uint16_t> ports;
  if (connections.empty()) return ports;
  std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    std::array<char, 64> link{};
    std::string path = folder + "/" + entry->d_name;
    ssize_t size = readlink(path.c_str(), link.data(), link.size());
    std::string target(link.data(), size > 0 ? static_cast<size_t>(size) : 0);
    constexpr std::string_view kPrefix = "socket:[";
    if (!target.starts_with(kPrefix) || !target.ends_with(']')) continue;
    auto found =
        connections.find(target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1));
    if (found != connections.end()) ports.emplace(std::atoi(entry->d_name), found->second);
  }
  return ports;
}

void ReadStorePorts(const std::map<std::string, uint16_t>& connections, WorkerSample& sample) {
  sample.store_ports = AwaitedPorts(PortsOf(sample.pid, connections), *sample.process);
}

}  // namespace rankrun::agent
