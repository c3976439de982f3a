// Keys that groups leave in the store, and the cost of deleting them.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "store/wire/wire.h"
#include "tests/comm/worlds.h"
#include "tests/store/clients/fake_server.h"

namespace rankrun::comm {
namespace {

using testing::Each;

// Proxy of a store server that closes the connection of a client that lists the
// keys. Servers that do not know this operation behave so.
class WithoutListKeys {
 public:
  explicit WithoutListKeys(uint16_t server) : server_(server), listener_(store::BoundSocket()) {
    EXPECT_EQ(listen(listener_.get(), 64), 0);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~WithoutListKeys() {
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (Connection& each : connections_) Close(each);
  }
  uint16_t port() const { return SocketAddress::LocalOf(listener_.get())->port(); }
  int closed() const { return closed_; }

 private:
  struct Connection {
    Fd client;
    Fd server;
    std::jthread up, down;
  };

  static void Close(const Connection& connection) {
    shutdown(connection.client.get(), SHUT_RDWR);
    shutdown(connection.server.get(), SHUT_RDWR);
  }

  void Accept() {
    for (;;) {
      Fd client(accept(listener_.get(), nullptr, nullptr));
      if (!client) return;
      Connection& one = connections_.emplace_back();
      one.client = std::move(client);
      one.server = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      SocketAddress to = *SocketAddress::FromNumeric("127.0.0.1", server_);
      EXPECT_EQ(connect(one.server.get(), to.raw(), to.raw_size()), 0);
      one.down = std::jthread([&one] { Pass(one, one.server, one.client, [](auto) {}); });
      one.up = std::jthread([this, &one] {
        store::RequestDecoder decoder({});
        Pass(one, one.client, one.server, [&](std::string_view bytes) {
          for (auto next = decoder.Next(bytes); *next != nullptr; next = decoder.Next(bytes)) {
            if (!std::holds_alternative<store::ListKeysRequest>(**next)) continue;
            closed_ += 1;
            Close(one);
          }
        });
      });
    }
  }

  template <typename Look>
  static void Pass(const Connection& connection, const Fd& from, const Fd& to, Look look) {
    char part[65536];
    for (ssize_t got; (got = recv(from.get(), part, sizeof part, 0)) > 0;) {
      std::string_view bytes(part, static_cast<size_t>(got));
      look(bytes);
      if (send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != got) break;
    }
    Close(connection);
  }

  const uint16_t server_;
  const Fd listener_;
  std::atomic<int> closed_ = 0;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

TEST(StoreKeysTest, AServerThatCannotListKeysStillServesTheWorldAfterAnotherInit) {
  auto told = OnRanks(1, [](int) {
    WithoutListKeys server(static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT"))));
    setenv("MASTER_PORT", std::to_string(server.port()).c_str(), 1);
    InitOptions options{.timeout = std::chrono::seconds(60), .backend = "shm"};
    Init(options);
    Destroy();
    Init(options).MonitoredBarrier();
    NewGroup({}).MonitoredBarrier();
    Destroy();
    return std::to_string(server.closed()) + " closed";
  });
  EXPECT_THAT(told, Each("1 closed"));
}

struct StoreKeysOfGroupsTest : testing::TestWithParam<const char*> {
  // Returns the number of keys while no rank is in NewGroup or Destroy.
  static std::string Keys(ProcessGroup& world, TcpStore& store) {
    world.Barrier();
    int64_t keys = store.NumKeys();
    world.Barrier();
    return std::to_string(keys) + " ";
  }

  static void MakeAndDestroy(bool local) {
    ProcessGroup& pair = NewGroup({.ranks = {0, 1}, .use_local_synchronization = local});
    if (pair.is_member()) pair.MonitoredBarrier();
    Destroy(pair);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, StoreKeysOfGroupsTest, testing::Values("shm", "tcp", "gloo"),
                         NameOfBackend);

TEST_P(StoreKeysOfGroupsTest, GroupsThatAreMadeAndDestroyedLeaveNone) {
  auto counted = InWorld(3, GetParam(), [](ProcessGroup& world) {
    TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
    std::string text;
    for (int i = 1; i <= 20; ++i) {
      MakeAndDestroy(false);
      if (world.global_rank() < 2) MakeAndDestroy(true);
      if (i == 2 || i == 20) text += Keys(world, store);
    }
    return text;
  });
  for (const std::string& text : counted) {
    EXPECT_EQ(text.substr(0, text.size() / 2), text.substr(text.size() / 2)) << text;
  }
}

TEST_P(StoreKeysOfGroupsTest, KeysThatASlowerMemberMayReadStay) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    ProcessGroup& group = NewGroup({});
    if (world.global_rank() == 1) Destroy(group);
    world.Barrier();
    if (world.global_rank() == 1) return std::string();
    TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
    auto of_group = [&] {
      auto keys = store.ListKeys();
      return std::count_if(keys.begin(), keys.end(), [](const std::string& key) {
        return key.find("/group/") != std::string::npos;
      });
    };
    bool stayed = of_group() > 1;
    Destroy(group);
    return (stayed ? "stayed, then " : "gone, then ") + std::to_string(of_group());
  });
  EXPECT_EQ(told[0], "stayed, then 0");
}

// Otherwise rank 0 would end the store that it serves while rank 1 still uses
// it.
TEST(StoreKeysTest, NoRankSaysGoodbyeWithACollectiveUnderWay) {
  auto told = OnRanks(2, [](int r) {
    TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(60),
                                .backend = "shm",
                                .rank = r,
                                .world_size = 2,
                                .store = std::shared_ptr<Store>(store.Clone())});
    std::vector<int64_t> one{1};
    if (r == 1) {
      world.AllReduce(one, ReduceOp::kSum, kAsync);
      Destroy();
      return std::to_string(one[0]) + " at last";
    }
    std::string goodbye = "rankrun/attempt_0/world_0/goodbye/1";
    auto early = ErrorOf([&] { store.Wait({goodbye}, std::chrono::milliseconds(300)); });
    world.AllReduce(one);
    store.Wait({goodbye});
    Destroy();
    return early.substr(0, early.find(':'));
  });
  EXPECT_THAT(told, testing::ElementsAre("DistStoreError", "2 at last"));
}

}  // namespace
}  // namespace rankrun::comm
