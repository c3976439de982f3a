#include "agent/health/process_work.h"

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/health/connections.h"
#include "agent/health/process_facts.h"
#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

using ChildrenByParent = std::multimap<pid_t, pid_t>;

// One pass over all processes costs less than the lists of children of each thread.
ChildrenByParent ReadChildren() {
  ChildrenByParent children;
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir("/proc"), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0) children.emplace(ParentOf(pid), pid);
  }
  return children;
}

// Returns "net:[4026531840]"; empty, with errno set, if it cannot be read.
std::string NetworkOf(const std::string& process) {
  std::array<char, 64> link{};
  const ssize_t size = readlink(("/proc/" + process + "/ns/net").c_str(), link.data(), link.size());
  return std::string(link.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// Returns false for a process in another network namespace, whose connections the kernel does not
// show here, and for one that may not be looked at.
bool IsInNetwork(pid_t pid, const std::string& ours) {
  const std::string network = NetworkOf(std::to_string(pid));
  const bool has_ended = network.empty() && (errno == ENOENT || errno == ESRCH);
  return network == ours || has_ended;
}

// A process may get another parent during the pass, so that one may be listed twice.
void Collect(pid_t pid, const ChildrenByParent& children, std::vector<pid_t>& found) {
  if (std::ranges::find(found, pid) != found.end()) return;
  found.push_back(pid);
  const auto [begin, end] = children.equal_range(pid);
  for (auto child = begin; child != end; ++child) Collect(child->second, children, found);
}

void AddCounters(pid_t pid, WorkFacts& work) {
  work.cpu_time += CpuTimeOf(pid);
  const std::string main_cpu = ReadOfProcess(pid, "schedstat");
  work.main_cpu_time += std::chrono::nanoseconds(std::strtoll(main_cpu.c_str(), nullptr, 10));
  const std::string io = ReadOfProcess(pid, "io");
  work.io_bytes += NumberIn(io, "rchar") + NumberIn(io, "wchar");
  work.written_bytes +=
      NumberIn(ReadOfProcess(pid, "task/" + std::to_string(pid) + "/io"), "wchar");
}

void AddConnections(pid_t pid, const ConnectionsByInode& all, uint16_t store_port,
                    WorkFacts& work) {
  for (const auto& [descriptor, inode] : SocketsOf(pid)) {
    const auto found = all.find(inode);
    if (found == all.end()) continue;
    const TcpConnection& connection = found->second;
    if (connection.remote.port == store_port || connection.local.port == store_port) continue;
    work.received_bytes += connection.received_bytes;
    work.connections.push_back({connection.id, connection.since_received});
  }
}

// A connection that a process shares with its child is listed once.
void KeepLatest(std::vector<PeerConnection>& connections) {
  std::ranges::sort(connections, {}, [](const PeerConnection& connection) {
    return std::pair(connection.since_received, connection.id);
  });
  const auto same = [](const auto& a, const auto& b) { return a.id == b.id; };
  const auto end = std::unique(connections.begin(), connections.end(), same);
  connections.erase(end, connections.end());
  if (connections.size() > kMaxConnections) connections.resize(kMaxConnections);
}

// Returns the connection in whose call the main thread is; 0 if it is in none.
uint64_t AwaitedConnection(const ProcessFacts& facts, const ConnectionsByInode& all) {
  constexpr std::string_view kPrefix = "socket:[";
  if (facts.call != CallKind::kPeer || !facts.file.starts_with(kPrefix)) return 0;
  const auto found = all.find(std::strtoull(facts.file.c_str() + kPrefix.size(), nullptr, 10));
  return found == all.end() ? 0 : found->second.id;
}

}  // namespace

void AddWork(std::vector<WorkerSample>& samples, uint16_t store_port) {
  const ChildrenByParent children = ReadChildren();
  const auto connections = ReadConnections();
  const std::string network = NetworkOf("self");
  for (WorkerSample& sample : samples) {
    if (sample.pid == 0 || sample.has_ended) continue;
    WorkFacts work{.knows_connections = connections.has_value()};
    std::vector<pid_t> processes;
    Collect(sample.pid, children, processes);
    for (pid_t pid : processes) {
      AddCounters(pid, work);
      if (connections) AddConnections(pid, *connections, store_port, work);
      work.knows_connections &= IsInNetwork(pid, network);
    }
    work.wakes = NumberIn(ReadOfProcess(sample.pid, "status"), "voluntary_ctxt_switches");
    KeepLatest(work.connections);
    if (connections && sample.process) {
      work.awaited_connection = AwaitedConnection(*sample.process, *connections);
    }
    sample.work = std::move(work);
  }
}

}  // namespace rankrun::agent
