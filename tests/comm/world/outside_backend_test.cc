// Backends that are written outside of rankrun: rankrun/backend.h.

#include "comm/world/outside_backend.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "comm/world/backend_table.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/world/outside_ranks.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using transport::Bytes;
using transport::TestCall;
using Kind = Operation::Kind;

struct OutsideBackendTest : OutsideRanks {};

// Adds the numbers of all ranks and sends the sum around.
std::string AddAndSendAround(Backend& backend, int rank, int ranks, size_t count) {
  std::vector<int> data(count, rank + 1);
  TestCall call({.kind = Kind::kAllReduce, .dtype = DType::kInt32, .count = count, .number = 1});
  auto ok = AllReduce(backend, Bytes(data), count, {DType::kInt32, ReduceOp::kSum}, call.call);
  if (!ok) return ok.error().message;
  std::vector<int> received(count);
  Envelope envelope{.tag = 3, .dtype = DType::kInt32};
  auto receive =
      backend.StartRecv(transport::BlockOf(received), (rank + ranks - 1) % ranks, envelope);
  auto send = backend.StartSend(transport::ConstBlockOf(data), (rank + 1) % ranks, envelope);
  for (auto* transfer : {&send, &receive}) {
    if (auto over = (**transfer)->Wait(seconds(60)); !over) return over.error().message;
  }
  bool right = received == std::vector<int>(count, ranks * (ranks + 1) / 2);
  return right ? "right" : "wrong";
}

TEST_F(OutsideBackendTest, CollectivesAndMessagesGoOverItsConnections) {
  for (int ranks : {1, 2, 3}) {
    EXPECT_THAT(OnRanks(ranks,
                        [&](Backend& b, int rank) {
                          return ranks == 1 ? "right" : AddAndSendAround(b, rank, ranks, 100'000);
                        }),
                Each("right"));
  }
}

TEST_F(OutsideBackendTest, AConnectionMayMoveLittleAndBeInterrupted) {
  std::atomic<int> calls = 0;
  auto some = [&](auto move) {
    return [&calls, move](int fd, const iovec* parts, int) -> ssize_t {
      int call = ++calls;
      if (call % 5 == 0) return -EINTR;
      if (call % 7 == 0) return -EAGAIN;
      iovec first = *parts;
      first.iov_len = std::min(first.iov_len, size_t{13});
      return move(fd, &first, 1);
    };
  };
  backend.behaviour = {.send = some(&SendNow), .receive = some(&ReceiveNow)};
  EXPECT_THAT(OnRanks(2, [](Backend& b, int rank) { return AddAndSendAround(b, rank, 2, 1000); }),
              Each("right"));
}

TEST_F(OutsideBackendTest, AnErrorOfAConnectionIsTheLossOfItsPeer) {
  backend.behaviour.receive = [](int, const iovec*, int) { return -ENETDOWN; };
  EXPECT_THAT(
      OnRanks(2,
              [](Backend& b, int) {
                return InWords(Barrier(b, TestCall({.kind = Kind::kBarrier, .number = 1}).call));
              }),
      Each(HasSubstr("Network is down")));
}

TEST_F(OutsideBackendTest, AConnectionThatMovesMoreThanThereIsIsAnError) {
  backend.behaviour.receive = [](int, const iovec*, int) { return ssize_t{1} << 40; };
  EXPECT_THAT(
      OnRanks(2,
              [](Backend& b, int) {
                return InWords(Barrier(b, TestCall({.kind = Kind::kBarrier, .number = 1}).call));
              }),
      Each(HasSubstr("Protocol error")));
}

// A connection that cannot send, but has nothing to receive either.
TEST_F(OutsideBackendTest, AConnectionThatCannotSendIsLost) {
  for (ssize_t result : {ssize_t{-EIO}, ssize_t{0}, ssize_t{1} << 40}) {
    std::atomic<int> sends = 0;
    backend.behaviour.send = [&](int, const iovec*, int) {
      sends += 1;
      return result;
    };
    auto told = OnRanks(2, [](Backend& b, int rank) {
      std::vector<int> data(10);
      Envelope envelope{.tag = 3, .dtype = DType::kInt32};
      auto transfer = rank == 0 ? b.StartSend(transport::ConstBlockOf(data), 1, envelope)
                                : b.StartRecv(transport::BlockOf(data), 0, envelope);
      return InWords((*transfer)->Wait(seconds(60)));
    });
    EXPECT_THAT(told[0], HasSubstr(result == -EIO ? "Input/output error" : "Protocol error"));
    EXPECT_THAT(told[1], HasSubstr("lost rank 0"));
    EXPECT_GT(sends, 0);
  }
}

TEST_F(OutsideBackendTest, ConnectGetsTheGroup) {
  configure = [](BackendConfig& config) {
    config.global_ranks = {4, 7};
    config.hosts = {"a", "b"};
    config.host = "10.0.0.1";
    config.network_interface = "eth0";
    config.timeout = seconds(5);
  };
  std::array<std::string, 2> seen;
  auto fill = backend.connect;
  backend.connect = [&](const rankrun_backend_group& group, rankrun_connection* connections,
                        std::string& reason) {
    auto& text = seen[static_cast<size_t>(group.rank)];
    text = std::to_string(group.size == sizeof group) + " " + std::to_string(group.world_size) +
           " " + std::to_string(group.global_ranks[group.rank]) + " " + group.hosts[group.rank] +
           " " + group.address + " " + group.interfaces + " " + std::to_string(group.timeout_ms) +
           " " + std::to_string(group.is_cancelled(&group));
    EXPECT_EQ(rankrun_store_set(group.store, std::to_string(group.rank).c_str(), "x", 1),
              RANKRUN_OK);
    rankrun_bytes* value = nullptr;
    EXPECT_EQ(
        rankrun_store_get(group.store, std::to_string(1 - group.rank).c_str(), 60'000, &value),
        RANKRUN_OK);
    rankrun_bytes_release(value);
    return fill(group, connections, reason);
  };
  EXPECT_THAT(OnRanks(2, [](Backend&, int) { return "ok"; }), Each("ok"));
  EXPECT_THAT(seen, ElementsAre("1 2 4 a 10.0.0.1 eth0 5000 0", "1 2 7 b 10.0.0.1 eth0 5000 0"));
}

TEST_F(OutsideBackendTest, ARankThatCannotConnectEndsTheWaitOfTheOthers) {
  auto fill = backend.connect;
  backend.connect = [&](const rankrun_backend_group& group, rankrun_connection* connections,
                        std::string& reason) {
    if (group.rank == 0) return fill(group, connections, reason);  // has nobody to wait for
    if (group.rank == 1) {
      reason = "bind: Address already in use";
      return RANKRUN_BACKEND;
    }
    while (group.is_cancelled(&group) == 0) std::this_thread::yield();
    reason = "another rank cannot connect";
    return RANKRUN_NETWORK;
  };
  EXPECT_THAT(OnRanks(3, [](Backend&, int) { return "ok"; }),
              Each("error: rank 1: bind: Address already in use"));
}

TEST_F(OutsideBackendTest, ARankThatNeverConnectsIsMissing) {
  configure = [](BackendConfig& config) { config.timeout = milliseconds(50); };
  auto fill = backend.connect;
  backend.connect = [&](const rankrun_backend_group& group, rankrun_connection* connections,
                        std::string& reason) {
    if (group.rank == 0) return fill(group, connections, reason);
    while (group.is_cancelled(&group) == 0) std::this_thread::yield();
    reason = "cancelled";
    return RANKRUN_TIMEOUT;
  };
  EXPECT_THAT(OnRanks(2, [](Backend&, int) { return "ok"; }), Each(HasSubstr("missing: rank 1")));
}

TEST_F(OutsideBackendTest, ADescriptorThatCannotBePolledIsAnError) {
  auto fill = backend.connect;
  backend.connect = [&](const rankrun_backend_group& group, rankrun_connection* connections,
                        std::string& reason) {
    auto status = fill(group, connections, reason);
    if (group.rank == 1) connections[1].fd = connections[0].fd;
    return status;
  };
  EXPECT_THAT(OnRanks(2, [](Backend&, int) { return "ok"; }),
              Each(AllOf(StartsWith("error: rank 1: wait for connection 1 to rank 0 by its "
                                    "descriptor "),
                         HasSubstr("File exists"))));
}

TEST_F(OutsideBackendTest, AConnectionThatIsAbsentIsAnError) {
  backend.connect = [](const rankrun_backend_group&, rankrun_connection*, std::string&) {
    return RANKRUN_OK;
  };
  EXPECT_THAT(OnRanks(2, [](Backend&, int) { return "ok"; }),
              Each(HasSubstr("connection 0 to rank ")));
}

std::string ErrorIn(const rankrun_backend& backend) {
  return InWords(CheckOutsideBackend(backend));
}

TEST_F(OutsideBackendTest, AStructThatTheLibraryCannotUseIsRefused) {
  rankrun_backend good = backend.Description();
  EXPECT_EQ(ErrorIn(good), "ok");
  rankrun_backend bad = good;
  bad.version = 2;
  EXPECT_EQ(ErrorIn(bad), "the backend is of version 2: want 1");
  bad = good;
  bad.size = 8;
  EXPECT_EQ(ErrorIn(bad), "the backend has the size 8: want sizeof(rankrun_backend), " +
                              std::to_string(sizeof good));
  bad = good;
  bad.size = offsetof(rankrun_backend, open_group);  // without the younger functions
  EXPECT_EQ(ErrorIn(bad), "ok");
  for (const char* name : {"", "A", "../x"}) {
    bad = good;
    bad.name = name;
    EXPECT_EQ(ErrorIn(bad), "the name of the backend is \"" + std::string(name) +
                                "\": want small letters, digits and _");
  }
  bad.name = nullptr;
  EXPECT_EQ(ErrorIn(bad), "the name of the backend is NULL: want small letters, digits and _");
  const std::map<std::string, void (*)(rankrun_backend&)> clears = {
      {"connect", [](rankrun_backend& b) { b.connect = nullptr; }},
      {"send", [](rankrun_backend& b) { b.send = nullptr; }},
      {"receive", [](rankrun_backend& b) { b.receive = nullptr; }},
      {"shut_down", [](rankrun_backend& b) { b.shut_down = nullptr; }},
      {"close", [](rankrun_backend& b) { b.close = nullptr; }}};
  for (const auto& [name, clear] : clears) {
    bad = good;
    clear(bad);
    EXPECT_EQ(ErrorIn(bad), "the function " + name + " of the backend is NULL: want a function");
  }
}

TEST_F(OutsideBackendTest, ARegisteredBackendIsFoundByName) {
  rankrun_backend description = backend.Description();
  std::string name = "registered";
  description.name = name.c_str();
  EXPECT_FALSE(BackendAvailable("registered"));
  ASSERT_EQ(rankrun_register_backend(&description), RANKRUN_OK) << rankrun_last_error();
  name = "changed";  // the library has a copy
  EXPECT_TRUE(BackendAvailable("Registered"));
  EXPECT_THAT(rankrun::Backend::List(), testing::Contains("registered"));
  transport::BackendGroup group("registered", 1);
  MemoryStore store(group.keys);
  auto creator = FindBackend("registered", {});
  ASSERT_TRUE(creator) << creator.error().message;
  EXPECT_TRUE((*creator)(group.Config(store, 0)));
}

TEST_F(OutsideBackendTest, ANameThatIsTakenIsRefused) {
  rankrun_backend description = backend.Description();
  description.name = "twice";
  RegisterBackend(description);
  for (const char* name : {"twice", "auto", "shm", "tcp", "hierarchical", "gloo", "nccl"}) {
    description.name = name;
    EXPECT_EQ(rankrun_register_backend(&description), RANKRUN_INVALID);
    EXPECT_EQ(std::string(rankrun_last_error()),
              "RegisterBackend: the name \"" + std::string(name) + "\" is taken: want another one");
  }
  EXPECT_EQ(rankrun_register_backend(nullptr), RANKRUN_INVALID);
  EXPECT_EQ(std::string(rankrun_last_error()), "rankrun_register_backend: backend is NULL");
}

}  // namespace
}  // namespace rankrun::comm
