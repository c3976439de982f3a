#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/rpc/agent.h"

namespace rankrun::comm::rpc {

// Workers of RPC in this process, connected by socket pairs. Their names are a, b, c ...
class Agents {
 public:
  explicit Agents(int count, int methods_at_once = 16) {
    auto n = static_cast<size_t>(count);
    std::vector<std::vector<std::unique_ptr<stream::Connection>>> connections(n);
    for (auto& row : connections) row.resize(n);
    std::vector<std::string> names;
    for (size_t one = 0; one < n; ++one) {
      names.emplace_back(1, static_cast<char>('a' + one));
      for (size_t other = 0; other < one; ++other) {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        connections[one][other] = stream::ConnectionOver(Fd(ends[0]));
        connections[other][one] = stream::ConnectionOver(Fd(ends[1]));
      }
    }
    methods = std::vector<Methods>(n);
    for (size_t id = 0; id < n; ++id) {
      auto agent = Agent::Make(
          {.self = {static_cast<int>(id), names[id]}, .methods = methods_at_once}, methods[id]);
      EXPECT_TRUE(agent) << agent.error().message;
      agents_.push_back(*std::move(agent));
    }
    for (size_t id = 0; id < n; ++id) {
      std::vector<NewPeer> peers;
      for (size_t other = 0; other < n; ++other) {
        if (other == id) continue;
        peers.push_back(
            {{static_cast<int>(other), names[other]}, std::move(connections[id][other])});
      }
      EXPECT_TRUE(agents_[id]->AddPeers(std::move(peers)));
    }
  }

  Agent& operator[](size_t id) { return *agents_[id]; }
  void End(size_t id) { agents_[id].reset(); }
  // Registers a method on all workers.
  void Register(const std::string& name, const Method& method) {
    for (Methods& each : methods) EXPECT_TRUE(each.Add(name, method));
  }

  std::vector<Methods> methods;  // by worker

 private:
  std::vector<std::unique_ptr<Agent>> agents_;
};

}  // namespace rankrun::comm::rpc
