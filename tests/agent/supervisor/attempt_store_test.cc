#include "agent/supervisor/attempt_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/write_all.h"
#include "store/server/server_stats.h"
#include "store/wire/wire.h"
#include "tests/base/net/peer_user_probe.h"
#include "tests/base/uv/loopback.h"
#include "tests/base/uv/ready.h"
#include "tests/store/server/log_lines.h"

namespace rankrun::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;
constexpr uid_t kNobody = 65534;

TEST(StoreMemoryTest, TheStoreTakesAnEighthOfTheMemory) {
  EXPECT_EQ(StoreMemory(16 * kGiB, 64 * kMiB), 2 * kGiB);
  EXPECT_EQ(StoreMemory(2 * kGiB, 64 * kMiB), 256 * kMiB);
  EXPECT_EQ(StoreMemory(1024 * kGiB, 64 * kMiB), 4 * kGiB);
  EXPECT_EQ(StoreMemory(256 * kMiB, 64 * kMiB), 128 * kMiB) << "room for two values";
}

TEST(StoreMemoryTest, TheCgroupsLimitCountsIfItIsLower) {
  test::TempFolder folder;
  const size_t of_machine = UsableMemory(folder.path());
  EXPECT_GT(of_machine, kMiB);
  folder.Write("proc/self/cgroup", "0::/job\n");
  folder.Write("sys/fs/cgroup/job/memory.events", "oom_kill 0\n");
  folder.Write("sys/fs/cgroup/job/memory.max", std::to_string(kMiB));
  EXPECT_EQ(UsableMemory(folder.path()), kMiB);
  folder.Write("sys/fs/cgroup/job/memory.max", std::to_string(size_t{1} << 60));
  EXPECT_EQ(UsableMemory(folder.path()), of_machine);
}

struct AttemptStoreTest : testing::Test {
  AttemptStoreTest() { signal(SIGPIPE, SIG_IGN); }

  void Open() {
    auto opened = store.Open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  // Connects as a client that asks for a value as its first request.
  Fd Ask(std::string_view key) const {
    Fd client = test::ConnectTo(test::Loopback(store.port()));
    WriteAll(client.get(),
             store::EncodeValidate() + store::EncodeRequest(store::GetRequest{std::string(key)}));
    return client;
  }
  Fd AskAsNobody(std::string_view key) const {
    EXPECT_EQ(seteuid(kNobody), 0);
    Fd client = Ask(key);
    EXPECT_EQ(seteuid(0), 0);
    return client;
  }
  // Returns the bytes that have arrived; nothing if the store closed the
  // connection.
  static std::optional<std::string> Arrived(const Fd& client) {
    std::string bytes(4096, '\0');
    ssize_t count = recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bool is_closed = count == 0 || (count < 0 && errno == ECONNRESET);
    if (is_closed) return std::nullopt;
    bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return bytes;
  }
  // Returns the answer; empty if the store closes the connection.
  std::string AnswerTo(const Fd& client) {
    std::string answer;
    bool is_closed = false;
    auto has_ended = [&] {
      if (is_closed || !answer.empty()) return true;
      auto arrived = Arrived(client);
      is_closed = !arrived;
      answer = arrived.value_or("");
      return is_closed || !answer.empty();
    };
    EXPECT_TRUE(loop.RunUntil(has_ended, test::kLong));
    return answer;
  }

  Loop loop;
  JobSpec spec;
  AttemptStore store{loop, spec, [](pid_t) { return std::optional<int>(); }};
};

TEST_F(AttemptStoreTest, ClientsWaitFromTheOpeningOfARoundToItsStart) {
  spec.nodes.emplace();
  Open();
  ASSERT_TRUE(store.OpenForRound());
  Fd client = Ask("key");
  for (int turns = 0; turns < 10; ++turns) test::RunReadyCallbacks(loop);
  EXPECT_EQ(Arrived(client), "");
  store.AdmitOnly({"127.0.0.1"});
  EXPECT_NE(AnswerTo(client), "");
}

TEST_F(AttemptStoreTest, TheLimitOfTheMachineIsInForceSoon) {
  const size_t limit = StoreMemory(UsableMemory(), store::WireLimits{}.value_bytes);
  if (limit == store::ServerOptions{}.largest_store_bytes) GTEST_SKIP() << "the largest there is";
  Open();
  const std::string shown = "\"largest_bytes\":" + std::to_string(limit) + ",";
  auto is_shown = [&] { return AnswerTo(Ask(store::kStatsKey)).find(shown) != std::string::npos; };
  EXPECT_TRUE(test::WaitFor(is_shown));
}

TEST_F(AttemptStoreTest, AnOpenStoreWarnsOfAnAddressOfAnotherHost) {
  spec.store_open = spec.master_addr_typed = true;
  spec.master_addr_origin = "PET_MASTER_ADDR";
  for (const auto& [address, is_warned] :
       {std::pair("255.255.255.255", true), std::pair("127.0.0.2", false)}) {
    spec.master_addr = address;
    store::LogLines log;
    AttemptStore opened(loop, spec, [](pid_t) { return std::optional<int>(); });
    ASSERT_TRUE(opened.Open());
    EXPECT_EQ(
        log.Get(),
        is_warned
            ? std::vector<std::string>{"rankrun: warning: PET_MASTER_ADDR "
                                       "255.255.255.255 is no address of this host, where the "
                                       "workers' store is: workers may not reach it\n"}
            : std::vector<std::string>{});
  }
}

// Another user of the host, and a job that root runs.
struct AttemptStoreUsersTest : AttemptStoreTest {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  }
};

TEST_F(AttemptStoreUsersTest, AnotherUserIsRefused) {
  store::LogLines log;
  Open();
  EXPECT_EQ(AnswerTo(AskAsNobody("key")), "");
  EXPECT_NE(AnswerTo(Ask("key")), "");
  EXPECT_THAT(log.Get(), Contains(HasSubstr("it belongs to user 65534 of this host; --store-open "
                                            "admits all users")));
}

TEST_F(AttemptStoreUsersTest, AnOpenStoreServesAllUsers) {
  spec.store_open = true;
  Open();
  EXPECT_NE(AnswerTo(AskAsNobody("key")), "");
}

// The store is on another node, and asks this one.
TEST_F(AttemptStoreUsersTest, ANodeVouchesForClientsOfItsUser) {
  Open();
  Fd own = Ask("key"), other = AskAsNobody("key");
  auto as_seen = [this](uint64_t id, const Fd& client) {
    SocketAddress local = *SocketAddress::LocalOf(client.get());
    return StoreClient{id, local.Host(), local.port(), "127.0.0.1", store.port()};
  };
  const WhoseClients question{{as_seen(7, own), as_seen(8, other), {9, "no address", 1, "", 2}}};
  const auto verdicts = store.Judge(question).verdicts;
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[0], (ClientVerdict{7, ""}));
  EXPECT_EQ(verdicts[1], (ClientVerdict{8, "it belongs to user 65534", true}));
  EXPECT_THAT(verdicts[2].why, HasSubstr("no program there has this connection"));
  spec.store_open = true;
  EXPECT_EQ(store.Judge(question).verdicts[1].why, "");
}

struct AttemptStoreWorkersTest : AttemptStoreUsersTest {
  void SetUp() override {
    AttemptStoreUsersTest::SetUp();
    if (IsSkipped()) return;
    test::Pipe changed = test::MakePipe();
    worker = test::Fork([&] {
      life.write_end.Reset();
      bool is_other = setresuid(kNobody, kNobody, kNobody) == 0;
      if (!is_other || write(changed.write_end.get(), "x", 1) != 1) return 1;
      char byte;
      return read(life.read_end.get(), &byte, 1) == 0 ? 0 : 1;
    });
    char byte;
    ASSERT_EQ(read(changed.read_end.get(), &byte, 1), 1);
    Open();
    EXPECT_NE(AnswerTo(AskAsNobody("key")), "");
  }
  void EndWorker() {
    life.write_end.Reset();
    if (worker <= 0) return;
    EXPECT_EQ(test::WaitForExit(std::exchange(worker, 0)).value, 0);
  }
  void TearDown() override { EndWorker(); }

  test::Pipe life = test::MakePipe();
  pid_t worker = 0;
};

TEST_F(AttemptStoreWorkersTest, TheUserOfAWorkerIsServed) {
  EXPECT_NE(AnswerTo(AskAsNobody("key")), "") << "without another search";
}

// The store may be on another node, so that this one opens none.
TEST_F(AttemptStoreWorkersTest, TheUserOfAnEarlierAttemptIsAStranger) {
  EndWorker();
  store.ForgetWorkers();
  EXPECT_EQ(AnswerTo(AskAsNobody("key")), "");
}

}  // namespace
}  // namespace rankrun::agent
