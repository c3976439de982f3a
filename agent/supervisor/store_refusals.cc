#include "agent/supervisor/store_refusals.h"

#include <algorithm>
#include <utility>

#include "agent/health/store_waits.h"
#include "agent/process/descendants.h"
#include "base/log.h"
#include "base/net/network_interface.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxTexts = 4;

bool IsOfThisHost(const SocketAddress& client) {
  if (client.is_loopback()) return true;
  auto own = InterfaceAddresses();
  return own && std::ranges::find(*own, client.Host()) != own->end();
}

// Returns the worker that has, or one of whose descendants has, the client's end of a connection;
// 0 if there is none. Runs in the pool.
pid_t WorkerOf(const SocketAddress& client, uint16_t store_port) {
  if (!IsOfThisHost(client)) return 0;
  auto connections = ReadConnectionsTo(store_port);
  std::erase_if(connections, [&](const auto& entry) { return entry.second != client.port(); });
  for (pid_t pid : Descendants()) {
    if (!PortsOf(pid, connections).empty()) return ChildAbove(pid);
  }
  return 0;
}

}  // namespace

void StoreRefusals::Note(Refusal refusal, uint16_t port,
                         std::function<void(const std::string& why)> done) {
  auto worker = std::make_shared<pid_t>(0);  // shared by the pool's job and its completion
  const SocketAddress client = refusal.client;
  RunInPool(
      loop_, [worker, client, port] { *worker = WorkerOf(client, port); },
      [worker, refusal = std::move(refusal), done = std::move(done), self = self_] {
        if (*self != nullptr) (*self)->OnFound(refusal, *worker, done);
      });
}

void StoreRefusals::OnFound(const Refusal& refusal, pid_t worker,
                            const std::function<void(const std::string&)>& done) {
  const auto rank = worker != 0 ? rank_of_(worker) : std::nullopt;
  const std::string client =
      rank ? "rank " + std::to_string(*rank) : "the client at " + refusal.client.ToString();
  const std::string text = client + ": " + refusal.why;
  LogWarn("the store refused " + text);
  if (texts_.size() < kMaxTexts) texts_.push_back(text);
  done(text);
}

}  // namespace rankrun::agent
