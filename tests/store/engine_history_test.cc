#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "store/engine.h"

namespace rankrun::store {
namespace {

// What the engine is to do, said as plainly as possible: every wait is looked
// at whenever a key comes.
class Model {
 public:
  bool Apply(ConnectionId from, const Request& request, std::vector<Outgoing>& replies) {
    return std::visit([&](const auto& one_kind) { return On(from, one_kind, replies); }, request);
  }
  void Disconnect(ConnectionId from) {
    std::erase_if(waits_, [&](const Wait& wait) { return wait.connection == from; });
  }
  size_t key_count() const { return values_.size(); }

 private:
  using Replies = std::vector<Outgoing>;
  struct Wait {
    ConnectionId connection;
    std::vector<std::string> missing;
  };

  void Put(const std::string& key, const std::string& value, Replies& replies) {
    values_[key] = value;
    for (Wait& wait : waits_) {
      if (std::erase(wait.missing, key) > 0 && wait.missing.empty()) {
        replies.push_back({wait.connection, WaitReply::kStopWaiting});
      }
    }
    std::erase_if(waits_, [](const Wait& wait) { return wait.missing.empty(); });
  }
  bool On(ConnectionId, const SetRequest& r, Replies& replies) {
    Put(r.key, r.value, replies);
    return true;
  }
  bool On(ConnectionId from, const CompareSetRequest& r, Replies& replies) {
    bool exists = values_.contains(r.key);
    if ((!exists && r.expected.empty()) || (exists && values_[r.key] == r.expected)) {
      Put(r.key, r.desired, replies);
      replies.push_back({from, ValueReply{r.desired}});
    } else {
      replies.push_back({from, ValueReply{exists ? values_[r.key] : r.expected}});
    }
    return true;
  }
  bool On(ConnectionId from, const GetRequest& r, Replies& replies) {
    replies.push_back({from, ValueReply{values_.contains(r.key) ? values_[r.key] : ""}});
    return true;
  }
  bool On(ConnectionId from, const AddRequest& r, Replies& replies) {
    int64_t sum = r.delta;
    try {
      if (values_.contains(r.key)) sum += std::stoll(values_[r.key]);
    } catch (const std::exception&) {
      return false;
    }
    Put(r.key, std::to_string(sum), replies);
    replies.push_back({from, NumberReply{sum}});
    return true;
  }
  bool On(ConnectionId from, const CheckRequest& r, Replies& replies) {
    bool ready = Missing(r.keys).empty();
    replies.push_back({from, ready ? CheckReply::kReady : CheckReply::kNotReady});
    return true;
  }
  bool On(ConnectionId from, const WaitRequest& r, Replies& replies) {
    auto missing = Missing(r.keys);
    if (missing.empty()) replies.push_back({from, WaitReply::kStopWaiting});
    if (!missing.empty()) waits_.push_back({from, missing});
    return true;
  }
  bool On(ConnectionId from, const DeleteKeyRequest& r, Replies& replies) {
    replies.push_back({from, NumberReply{static_cast<int64_t>(values_.erase(r.key))}});
    return true;
  }
  bool On(ConnectionId from, const CancelWaitRequest&, Replies& replies) {
    Disconnect(from);
    replies.push_back({from, WaitReply::kWaitCanceled});
    return true;
  }
  bool On(ConnectionId from, const PingRequest& r, Replies& replies) {
    replies.push_back({from, PingReply{r.nonce}});
    return true;
  }
  std::vector<std::string> Missing(std::vector<std::string> keys) {
    std::erase_if(keys, [this](const std::string& key) { return values_.contains(key); });
    return keys;
  }

  std::map<std::string, std::string> values_;
  std::vector<Wait> waits_;  // in the order in which they came
};

// Few keys, values and connections, so that they meet often.
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }
  ConnectionId Connection() { return 1 + Below(5); }
  Request AnyRequest() {
    switch (Below(12)) {
      case 0:
        return SetRequest{Key(), Value()};
      case 1:
        return CompareSetRequest{Key(), Value(), Value()};
      case 2:
        return GetRequest{Key()};
      case 3:
        return AddRequest{Key(), static_cast<int64_t>(Below(9)) - 4};
      case 4:
        return CheckRequest{SomeKeys()};
      case 5:
        return CancelWaitRequest{};
      case 6:
        return PingRequest{static_cast<uint32_t>(Below(1000))};
      case 7:
      case 8:
      case 9:
        return WaitRequest{SomeKeys()};
      default:
        return DeleteKeyRequest{Key()};
    }
  }

 private:
  std::string Key() { return std::string(1, static_cast<char>('a' + Below(6))); }
  std::string Value() {
    const std::string values[] = {"", "1", "-2", "x", " 3y"};
    return values[Below(std::size(values))];
  }
  std::vector<std::string> SomeKeys() {
    std::vector<std::string> keys(Below(4));
    for (std::string& key : keys) key = Key();
    return keys;
  }

  std::mt19937 random_;
};

void RunHistory(unsigned seed, int steps) {
  Chance chance(seed);
  Model model;
  Engine engine(size_t{1} << 30);
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    ConnectionId from = chance.Connection();
    std::vector<Outgoing> expected;
    std::vector<Outgoing> replies;
    bool leaves = chance.Below(20) == 0;
    if (!leaves) {
      Request request = chance.AnyRequest();
      bool accepted = model.Apply(from, request, expected);
      ASSERT_EQ(bool(engine.Apply(from, request, replies)), accepted);
      leaves = !accepted;
    }
    if (leaves) {
      model.Disconnect(from);
      engine.Disconnect(from);
    }
    ASSERT_TRUE(replies == expected);
    ASSERT_EQ(engine.key_count(), model.key_count());
  }
  for (ConnectionId id = 1; id <= 5; ++id) engine.Disconnect(id);
  std::vector<Outgoing> replies;
  for (char key = 'a'; key < 'a' + 6; ++key) {
    ASSERT_TRUE(engine.Apply(1, DeleteKeyRequest{std::string(1, key)}, replies));
  }
  ASSERT_EQ(engine.bytes(), 0u);
}

TEST(EngineHistoryTest, AgreesWithTheModelOnRandomHistories) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RunHistory(seed, 500);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rankrun::store
