#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>
#include <rankrun/store.h>

#include "tests/comm/cpp/rpc/backends.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::Payload;
using rpc::WorkerInfo;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

Payload Echo(const WorkerInfo& caller, const Payload& arguments) {
  return {caller.name + ":" + arguments.bytes, arguments.attachments};
}

rpc::Attachment AttachmentOf(std::string text) {
  auto owner = std::make_shared<std::string>(std::move(text));
  return {owner, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}};
}

std::string TextOf(const rpc::Attachment& attachment) {
  return {reinterpret_cast<const char*>(attachment.bytes.data()), attachment.bytes.size()};
}

class RpcTest : public RpcBackendsTest {
 protected:
  // Runs `body` in the processes of workers w0, w1 ..., which have RPC.
  static std::vector<std::string> OnWorkers(int count,
                                            const std::function<std::string(int id)>& body) {
    return OnRanks(count, [&](int rank) {
      rpc::RegisterMethod("echo", Echo);
      Start(NameOf(rank));
      std::string text = body(rank);
      if (rpc::Initialized()) rpc::Shutdown();
      return text;
    });
  }
};
RANKRUN_WITH_EACH_RPC_BACKEND(RpcTest);

TEST_P(RpcTest, EachWorkerCallsAllByNameIdAndInfo) {
  auto texts = OnWorkers(3, [](int id) {
    std::string text;
    for (int callee = 0; callee < 3; ++callee) {
      text += rpc::RpcSync(callee, "echo", {"a"}).bytes + " ";
      text += rpc::RpcSync(NameOf(callee), "echo", {"b"}).bytes + " ";
      text += rpc::RpcAsync(rpc::GetWorkerInfo(NameOf(callee)), "echo", {"c"}).Wait().bytes + " ";
    }
    if (rpc::GetWorkerInfo().id != id || rpc::GetWorkerInfos().size() != 3) text += "wrong info";
    return text;
  });
  for (int id = 0; id < 3; ++id) {
    std::string own = NameOf(id) + ":a " + NameOf(id) + ":b " + NameOf(id) + ":c ";
    EXPECT_EQ(texts[static_cast<size_t>(id)], own + own + own);
  }
}

TEST_P(RpcTest, AttachmentsArriveWholeAndAligned) {
  auto texts = OnWorkers(2, [](int id) {
    std::string large(5'000'001, static_cast<char>('0' + id));
    Payload result =
        rpc::RpcSync(1 - id, "echo", {"x", {AttachmentOf("small"), AttachmentOf(large)}});
    if (result.attachments.size() != 2) return std::string("another number");
    bool is_aligned = true;
    for (const rpc::Attachment& each : result.attachments) {
      is_aligned &= reinterpret_cast<uintptr_t>(each.bytes.data()) % 64 == 0;
    }
    bool is_right =
        TextOf(result.attachments[0]) == "small" && TextOf(result.attachments[1]) == large;
    return std::string(is_right ? "right" : "wrong") + (is_aligned ? "" : ", not aligned");
  });
  EXPECT_THAT(texts, Each("right"));
}

TEST_P(RpcTest, ErrorsNameWorkerAndMethod) {
  auto texts = OnWorkers(2, [](int id) {
    rpc::RegisterMethod("fail", [](const WorkerInfo&, const Payload&) -> Payload {
      throw std::runtime_error("no disk");
    });
    rpc::RpcSync(1 - id, "echo");  // the other one may not have registered it yet
    std::string text;
    auto other = [&](const std::string& method) {
      return ErrorOf([&] { rpc::RpcSync(id, method); });
    };
    text += other("fail") + "\n" + other("mul") + "\n";
    text += ErrorOf([&] { rpc::RpcSync("w7", "echo"); }) + "\n";
    text += ErrorOf([&] { rpc::RpcSync(2, "echo"); }) + "\n";
    text += ErrorOf([&] { rpc::RpcAsync(id, "fail").Wait(); }) + "\n";
    text += ErrorOf([&] { rpc::RpcSync(id, "echo", {}, milliseconds(-1)); }) + "\n";
    return text + ErrorOf([&] { rpc::Init("again"); });
  });
  EXPECT_EQ(texts[0],
            "DistError: call of fail on worker w0: no disk\n"
            "DistError: call of mul on worker w0: there is no method mul: want echo, fail\n"
            "DistError: there is no worker w7: want w0, w1\n"
            "DistError: there is no worker with the id 2: want w0, w1\n"
            "DistError: call of fail on worker w0: no disk\n"
            "DistError: timeout is -1 ms: want 0, which is none, or more\n"
            "DistError: rpc::Init: RPC is running: call rpc::Shutdown() first");
}

TEST_P(RpcTest, ATimeoutEndsTheCallOnly) {
  auto texts = OnRanks(2, [](int id) {
    auto may_end = std::make_shared<std::promise<void>>();
    rpc::RegisterMethod("echo", Echo);
    rpc::RegisterMethod("wait", [may_end](const WorkerInfo&, const Payload&) {
      may_end->get_future().wait();
      return Payload{"late"};
    });
    rpc::RegisterMethod("release", [may_end](const WorkerInfo&, const Payload&) {
      may_end->set_value();
      return Payload{};
    });
    Start(NameOf(id));
    std::string text;
    if (id == 0) {
      text = ErrorOf([&] { rpc::RpcSync(1, "wait", {}, milliseconds(30)); }) + "\n";
      rpc::RpcSync(1, "release");
      text += rpc::RpcSync(1, "echo", {"x"}).bytes;
    }
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("DistTimeoutError: call of wait on worker w1: no reply"),
                              HasSubstr("\nw0:x")));
}

TEST_P(RpcTest, WithoutInitNothingIsCalled) {
  EXPECT_THAT(ErrorOf([] { rpc::RpcSync(0, "echo"); }),
              "DistError: RPC is not running: call rpc::Init() first");
  EXPECT_THAT(ErrorOf([] { rpc::Shutdown(); }), HasSubstr("RPC is not running"));
  EXPECT_THAT(ErrorOf([] { rpc::RegisterMethod("", Echo); }), HasSubstr("want 1 to 255"));
  EXPECT_FALSE(rpc::Initialized());
}

TEST_P(RpcTest, EqualOrWrongNamesAreRefusedOnAllWorkers) {
  auto texts = OnRanks(3, [](int rank) {
    std::string text = ErrorOf([&] { Start(rank == 0 ? "w1" : NameOf(rank)); });
    text += "\n" + ErrorOf([&] { Start(rank == 1 ? "no name" : NameOf(rank)); });
    text += "\n" + ErrorOf([&] { Start(rank == 1 ? "caf\xe9" : NameOf(rank)); });
    Start(NameOf(rank));
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("workers 0 and 1 have the name w1"),
                                HasSubstr("the name of worker 1 is \"no name\""),
                                HasSubstr("the name of worker 1 is \"caf"))));
}

TEST_P(RpcTest, AWorkerThatDoesNotComeIsNamed) {
  auto texts = OnRanks(3, [](int rank) {
    if (rank == 2) return std::string();
    auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
    TcpStore(TcpStoreOptions{.port = port}).Barrier("both", 2);
    auto options =
        rpc::ConstructRpcBackendOptions(rpc::FindBackend(GetParam()), milliseconds(2000));
    return ErrorOf([&] { Start(NameOf(rank), {.backend_options = options}); });
  });
  for (int rank : {0, 1}) {
    EXPECT_THAT(
        texts[static_cast<size_t>(rank)],
        AllOf(HasSubstr("DistTimeoutError: rpc::Init of worker w"), HasSubstr("missing: rank 2")));
  }
}

// A file of a run that was killed, for instance.
TEST_P(RpcTest, AStoreOfAnotherRunIsNamed) {
  auto texts = OnRanks(1, [](int) {
    auto store = std::make_shared<HashStore>();
    auto init = [&] {
      return ErrorOf([&] { Start("a", {.rank = 0, .world_size = 1, .store = store}); });
    };
    store->Add("rankrun/attempt_0/context_rpc/world_0/came/0", 1);
    store->Add("rankrun/attempt_0/rpc/static_0/came/0", 1);
    return init();
  });
  EXPECT_THAT(texts[0], HasSubstr("want a new one for each run"));
}

TEST_P(RpcTest, ShutdownWaitsForCallsUnderWay) {
  auto texts = OnRanks(3, [](int id) {
    rpc::RegisterMethod("relay", [](const WorkerInfo&, const Payload& left) {
      int more = std::stoi(left.bytes);
      if (more == 0) return Payload{"end"};
      int next = (rpc::GetWorkerInfo().id + 1) % 3;
      return rpc::RpcSync(next, "relay", {std::to_string(more - 1)});
    });
    Start(NameOf(id));
    auto future = rpc::RpcAsync(id, "relay", {"60"});
    rpc::Shutdown();
    return future.done() ? future.Wait().bytes : std::string("not done");
  });
  EXPECT_THAT(texts, Each("end"));
}

// Each call begins the next one after it has ended.
TEST_P(RpcTest, ShutdownWaitsForChains) {
  auto texts = OnWorkers(3, [](int id) {
    auto calls = std::make_shared<std::atomic<int>>(0);
    auto next = std::make_shared<std::function<void()>>();
    *next = [calls, next, id] {
      if (++*calls == 50) return;
      rpc::RpcAsync((id + *calls) % 3, "echo", {"x"}).Then([next](const auto&) { (*next)(); });
    };
    (*next)();
    rpc::Shutdown();
    *next = nullptr;
    return std::to_string(*calls);
  });
  EXPECT_THAT(texts, Each("50"));
}

TEST_P(RpcTest, InitAndShutdownManyTimes) {
  auto texts = OnRanks(2, [](int rank) {
    rpc::RegisterMethod("echo", Echo);
    for (int i = 0; i < 20; ++i) {
      Start(NameOf(rank));
      if (rpc::RpcSync(1 - rank, "echo", {"x"}).bytes != NameOf(rank) + ":x")
        return std::string("no");
      rpc::Shutdown();
    }
    return std::string("yes");
  });
  EXPECT_THAT(texts, Each("yes"));
}

TEST_P(RpcTest, AKilledWorkerEndsTheCallsToItWithItsName) {
  auto texts = OnRanks(3, [](int id) {
    auto done = std::make_shared<std::promise<void>>();
    auto when_done = done->get_future();
    rpc::RegisterMethod("echo", Echo);
    rpc::RegisterMethod("die", [](const WorkerInfo&, const Payload&) {
      raise(SIGKILL);
      return Payload{};
    });
    rpc::RegisterMethod("done", [done](const WorkerInfo&, const Payload&) {
      done->set_value();
      return Payload{};
    });
    Start(NameOf(id));
    if (id == 1) when_done.wait();  // until it is killed
    std::string text = ErrorOf([&] { rpc::RpcSync(1, "die"); });
    text += "\n" + ErrorOf([&] { rpc::RpcSync(1, "echo"); });
    text += "\n" + rpc::RpcSync(2 - id, "echo", {"x"}).bytes;
    ErrorOf([&] { rpc::RpcSync(2 - id, "done"); });  // it may have ended before its reply
    when_done.wait();
    rpc::Shutdown(false);
    return text;
  });
  for (int id : {0, 2}) {
    EXPECT_THAT(texts[static_cast<size_t>(id)],
                AllOf(HasSubstr("DistNetworkError: call of die on worker w1: lost worker w1: "),
                      HasSubstr("DistNetworkError: call of echo on worker w1: lost worker w1: "),
                      HasSubstr("\n" + NameOf(id) + ":x")));
  }
}

}  // namespace
}  // namespace rankrun::comm
