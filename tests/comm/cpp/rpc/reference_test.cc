// References to values of other workers.

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rankrun/rpc.h>

#include "base/mutex.h"
#include "tests/comm/cpp/rpc/backends.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::OwnedValue;
using rpc::Payload;
using rpc::Reference;
using rpc::WorkerInfo;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

// Object that is counted while it lives.
struct Counted {
  explicit Counted(int number) : value(number) { alive += 1; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { alive -= 1; }
  int value;
  static inline std::atomic<int> alive = 0;
};

void RegisterAll() {
  rpc::RegisterMethod("echo", [](const WorkerInfo&, const Payload& p) { return p; });
  rpc::RegisterMethod("fail", [](const WorkerInfo&, const Payload&) -> Payload {
    throw std::runtime_error("no disk");
  });
  rpc::RegisterMaker("make", [](const WorkerInfo&, const Payload& p) {
    return OwnedValue{std::make_shared<Counted>(std::stoi(p.bytes))};
  });
  rpc::RegisterMethod("add", [](const WorkerInfo&, const Payload& p) {
    auto object = std::any_cast<std::shared_ptr<Counted>>(p.references.at(0).LocalValue());
    object->value += std::stoi(p.bytes);
    return Payload{std::to_string(object->value)};
  });
  rpc::RegisterMethod("alive", [](const WorkerInfo&, const Payload&) {
    return Payload{std::to_string(Counted::alive)};
  });
  // Keeps a reference until it gets another one.
  static auto& mutex = *new Mutex;
  static auto& kept = *new std::vector<Reference>;
  rpc::RegisterMethod("keep", [](const WorkerInfo&, const Payload& p) {
    std::vector<Reference> dropped = p.references;
    MutexLock lock(mutex);
    kept.swap(dropped);
    lock.Unlock();
    return Payload{};
  });
  rpc::RegisterMethod("kept", [](const WorkerInfo&, const Payload&) {
    MutexLock lock(mutex);
    return Payload{"", {}, kept};
  });
}

class RpcReferenceTest : public RpcBackendsTest {
 protected:
  static std::vector<std::string> OnWorkers(int count,
                                            const std::function<std::string(int id)>& body) {
    return OnRanks(count, [&](int rank) {
      RegisterAll();
      Start(NameOf(rank));
      std::string text = body(rank);
      rpc::Shutdown();
      return text;
    });
  }
};
RANKRUN_WITH_EACH_RPC_BACKEND(RpcReferenceTest);

int AliveOn(int worker) { return std::stoi(rpc::RpcSync(worker, "alive").bytes); }

bool BecomesAlive(int worker, int wanted) {
  TimePoint deadline = MonotonicClock().Now() + std::chrono::seconds(60);
  while (AliveOn(worker) != wanted) {
    if (MonotonicClock().Now() > deadline) return false;
  }
  return true;
}

TEST_P(RpcReferenceTest, AValueStaysWithItsOwnerUntilItIsFetched) {
  auto texts = OnWorkers(2, [](int id) {
    std::string text;
    for (int owner : {0, 1}) {
      Reference value = rpc::Remote(owner, "echo", {"x" + std::to_string(id)});
      text += value.ToHere().bytes + (value.is_owner() ? " own " : " other ") + value.owner().name;
      text += value.confirmed_by_owner() ? ", " : " not confirmed, ";
    }
    return text;
  });
  EXPECT_EQ(texts[0], "x0 own w0, x0 other w1, ");
  EXPECT_EQ(texts[1], "x1 other w0, x1 own w1, ");
}

TEST_P(RpcReferenceTest, AnObjectIsUsedByItsOwnersMethodsAndFreed) {
  auto texts = OnWorkers(2, [](int id) {
    if (id == 1) return std::string();
    std::string text;
    {
      Reference object = rpc::Remote(1, "make", {"5"});
      text += rpc::RpcSync(1, "add", {"2", {}, {object}}).bytes + " ";
      text += rpc::RpcSync(1, "add", {"3", {}, {object, object}}).bytes + " ";
      Reference copy = object;
      text += std::to_string(AliveOn(1)) + " ";
      text += ErrorOf([&] { static_cast<void>(object.ToHere()); }) + " ";
      text += ErrorOf([&] { static_cast<void>(object.LocalValue()); });
    }
    return text + (BecomesAlive(1, 0) ? " freed" : " kept");
  });
  EXPECT_THAT(texts[0], AllOf(testing::StartsWith("7 10 1 "), HasSubstr("stays with its owner"),
                              HasSubstr("the value is of worker w1: want ToHere()"),
                              testing::EndsWith(" freed")));
}

TEST_P(RpcReferenceTest, AThirdWorkerKeepsAValueAlive) {
  auto texts = OnWorkers(3, [](int id) {
    if (id != 0) return std::string();
    {
      Reference object = rpc::Remote(1, "make", {"5"});
      rpc::RpcSync(2, "keep", {"", {}, {object}});
    }
    std::string text = std::to_string(AliveOn(1)) + " ";
    {
      Payload kept = rpc::RpcSync(2, "kept");
      rpc::RpcSync(2, "keep");
      text += rpc::RpcSync(1, "add", {"1", {}, kept.references}).bytes + " ";
    }
    return text + (BecomesAlive(1, 0) ? "freed" : "kept");
  });
  EXPECT_EQ(texts[0], "1 6 freed");
}

TEST_P(RpcReferenceTest, TheOwnerPassesOnItsOwnValues) {
  auto texts = OnWorkers(2, [](int id) {
    if (id != 0) return std::string();
    std::string text;
    {
      Reference mine = rpc::MakeReference({std::make_shared<Counted>(1)});
      rpc::RpcSync(1, "keep", {"", {}, {mine}});
    }
    text += std::to_string(Counted::alive) + " ";
    {
      Payload back = rpc::RpcSync(1, "kept");
      const std::any& value = back.references.at(0).LocalValue();
      text += std::to_string(std::any_cast<std::shared_ptr<Counted>>(value)->value) + " ";
      rpc::RpcSync(1, "keep");
    }
    return text + (BecomesAlive(0, 0) ? "freed" : "kept");
  });
  EXPECT_EQ(texts[0], "1 1 freed");
}

TEST_P(RpcReferenceTest, TheDeathOfAWorkerEndsItsHolds) {
  auto texts = OnRanks(3, [](int id) {
    RegisterAll();
    Start(NameOf(id));
    std::string text;
    if (id == 2) {  // holds a value of w1, and dies
      Reference object = rpc::Remote(1, "make", {"5"});
      object.owner();
      rpc::RpcSync(1, "add", {"1", {}, {object}});
      raise(SIGKILL);
    }
    if (id == 0) {
      TimePoint deadline = MonotonicClock().Now() + std::chrono::seconds(60);
      while (ErrorOf([] { rpc::RpcSync(2, "alive"); }) == "no error") {
        if (MonotonicClock().Now() > deadline) return std::string("w2 lives");
      }
      text = BecomesAlive(1, 0) ? "freed" : "kept";
      rpc::RpcSync(1, "keep", {"", {}, {rpc::MakeReference({std::make_shared<Counted>(1)})}});
    } else {
      while (Counted::alive >= 0 && rpc::RpcSync(1, "kept").references.empty()) {
      }
    }
    rpc::Shutdown(false);
    return text;
  });
  EXPECT_EQ(texts[0], "freed");
}

// The owner knows of the loss before the reference is passed on.
TEST_P(RpcReferenceTest, AHoldForAWorkerThatIsLostIsNotKept) {
  auto texts = OnRanks(3, [](int id) {
    RegisterAll();
    auto sees_loss = [] { return ErrorOf([] { rpc::RpcSync(2, "alive"); }) != "no error"; };
    rpc::RegisterMethod("sees_loss", [sees_loss](const WorkerInfo&, const Payload&) {
      return Payload{sees_loss() ? "yes" : "no"};
    });
    Start(NameOf(id));
    if (id == 2) raise(SIGKILL);
    std::string text;
    if (id == 0) {
      while (!sees_loss() || rpc::RpcSync(1, "sees_loss").bytes == "no") {
      }
      {
        Reference object = rpc::Remote(1, "make", {"5"});
        text = ErrorOf([&] { rpc::RpcSync(2, "keep", {"", {}, {object}}); }) + "\n";
        Reference mine = rpc::MakeReference({std::make_shared<Counted>(1)});
        text += ErrorOf([&] { rpc::RpcSync(2, "keep", {"", {}, {mine}}); });
      }
      text += BecomesAlive(1, 0) && BecomesAlive(0, 0) ? "\nfreed" : "\nkept";
      rpc::RpcSync(1, "keep", {"", {}, {rpc::MakeReference({std::make_shared<Counted>(1)})}});
    } else {
      while (rpc::RpcSync(1, "kept").references.empty()) {
      }
    }
    rpc::Shutdown(false);
    return text;
  });
  const std::string lost = "worker 2, which was to get a reference, is lost";
  EXPECT_THAT(texts[0], AllOf(HasSubstr("call of ~hold on worker w1: " + lost),
                              HasSubstr("\nDistError: " + lost), testing::EndsWith("\nfreed")));
}

TEST_P(RpcReferenceTest, ErrorsAreThoseOfTheMethod) {
  auto texts = OnWorkers(2, [](int id) {
    Reference failed = rpc::Remote(1 - id, "fail");
    std::string text = ErrorOf([&] { static_cast<void>(failed.ToHere()); }) + "\n";
    Reference unknown = rpc::Remote(1 - id, "mul");
    text += ErrorOf([&] { static_cast<void>(unknown.ToHere()); }) + "\n";
    text += ErrorOf([] { static_cast<void>(Reference().ToHere()); }) + "\n";
    return text + ErrorOf([] { rpc::RegisterMethod("~x", [](auto&, auto& p) { return p; }); });
  });
  for (int id : {0, 1}) {
    const std::string other = NameOf(1 - id);
    EXPECT_THAT(texts[static_cast<size_t>(id)],
                AllOf(HasSubstr("call of fail on worker " + other + ": no disk"),
                      HasSubstr("call of mul on worker " + other + ": there is no method mul"),
                      HasSubstr("the reference is to nothing"), HasSubstr("begins with '~'")));
  }
}

TEST_P(RpcReferenceTest, AReferenceMayOutliveRpc) {
  auto texts = OnRanks(2, [](int rank) {
    RegisterAll();
    Start(NameOf(rank));
    Reference value = rpc::Remote(1 - rank, "echo", {"x"});
    value.ToHere();
    rpc::Shutdown();
    return ErrorOf([&] { static_cast<void>(value.ToHere()); });
  });
  EXPECT_THAT(texts, Each("DistError: the reference is of RPC that has ended"));
}

}  // namespace
}  // namespace rankrun::comm
