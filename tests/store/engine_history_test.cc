#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
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
    bool is_barrier = false;
  };

  void Release(const std::string& key, bool barriers, Replies& replies) {
    for (Wait& wait : waits_) {
      if (wait.is_barrier != barriers) continue;
      if (std::erase(wait.missing, key) > 0 && wait.missing.empty()) {
        replies.push_back({wait.connection, WaitReply::kStopWaiting});
      }
    }
    std::erase_if(waits_, [](const Wait& wait) { return wait.missing.empty(); });
  }
  void Put(const std::string& key, const std::string& value, Replies& replies) {
    values_[key] = value;
    Release(key, /*barriers=*/false, replies);
    Release(key, /*barriers=*/true, replies);
  }
  // No number: nothing.
  std::optional<int64_t> Sum(const std::string& key, int64_t delta) {
    try {
      return values_.contains(key) ? std::stoll(values_[key]) + delta : delta;
    } catch (const std::exception&) {
      return std::nullopt;
    }
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
    auto sum = Sum(r.key, r.delta);
    if (!sum) return false;
    Put(r.key, std::to_string(*sum), replies);
    replies.push_back({from, NumberReply{*sum}});
    return true;
  }
  bool On(ConnectionId from, const BarrierRequest& r, Replies& replies) {
    auto count = Sum(r.key, 1);
    if (!count) return false;
    values_[r.key] = std::to_string(*count);
    Release(r.key, /*barriers=*/false, replies);
    if (*count < r.world_size) {
      waits_.push_back({from, {r.key}, /*is_barrier=*/true});
      return true;
    }
    Release(r.key, /*barriers=*/true, replies);
    replies.push_back({from, WaitReply::kStopWaiting});
    return true;
  }
  bool On(ConnectionId, const AppendRequest& r, Replies& replies) {
    Put(r.key, values_[r.key] + r.value, replies);
    return true;
  }
  bool On(ConnectionId, const MultiSetRequest& r, Replies& replies) {
    for (const auto& [key, value] : r.entries) Put(key, value, replies);
    return true;
  }
  bool On(ConnectionId from, const MultiGetRequest& r, Replies& replies) {
    ValuesReply reply;
    for (const std::string& key : r.keys) {
      reply.values.push_back(values_.contains(key) ? values_[key] : "");
    }
    replies.push_back({from, reply});
    return true;
  }
  bool On(ConnectionId from, const GetNumKeysRequest&, Replies& replies) {
    replies.push_back({from, NumberReply{static_cast<int64_t>(values_.size())}});
    return true;
  }
  bool On(ConnectionId from, const ListKeysRequest&, Replies& replies) {
    KeysReply reply;
    for (const auto& [key, value] : values_) reply.keys.push_back(key);
    replies.push_back({from, reply});
    return true;
  }
  bool On(ConnectionId, const QueuePushRequest& r, Replies& replies) {
    queues_[r.key].push_back(r.value);
    for (auto wait = waits_.begin(); wait != waits_.end(); ++wait) {
      if (wait->is_barrier || std::erase(wait->missing, r.key) == 0) continue;
      if (!wait->missing.empty()) return true;
      replies.push_back({wait->connection, WaitReply::kStopWaiting});
      waits_.erase(wait);
      return true;
    }
    return true;
  }
  bool On(ConnectionId from, const QueuePopRequest& r, Replies& replies) {
    auto& queue = queues_[r.key];
    PopReply reply{static_cast<int64_t>(queue.size()), std::nullopt};
    if (!queue.empty()) reply.value = queue.front();
    if (!queue.empty()) queue.pop_front();
    replies.push_back({from, reply});
    return true;
  }
  bool On(ConnectionId from, const QueueLenRequest& r, Replies& replies) {
    replies.push_back({from, NumberReply{static_cast<int64_t>(queues_[r.key].size())}});
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
    std::erase_if(keys, [this](const std::string& key) {
      return values_.contains(key) || !queues_[key].empty();
    });
    return keys;
  }

  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
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
    switch (Below(22)) {
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
        return AppendRequest{Key(), Value()};
      case 8:
        return MultiGetRequest{SomeKeys()};
      case 9:
        return MultiSetRequest{{{Key(), Value()}, {Key(), Value()}}};
      case 10:
        return GetNumKeysRequest{};
      case 11:
        return ListKeysRequest{};
      case 12:
        return QueuePushRequest{Key(), Value()};
      case 13:
      case 14:
        return QueuePopRequest{Key()};
      case 15:
        return QueueLenRequest{Key()};
      case 16:
        return BarrierRequest{Key(), static_cast<int64_t>(Below(5))};
      case 17:
      case 18:
      case 19:
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

// The engine lists keys in no order.
void SortKeys(std::vector<Outgoing>& replies) {
  for (Outgoing& outgoing : replies) {
    if (auto* list = std::get_if<KeysReply>(&outgoing.reply)) {
      std::sort(list->keys.begin(), list->keys.end());
    }
  }
}

// Takes all out and expects that nothing is left.
void ExpectEmptiable(Engine& engine) {
  for (ConnectionId id = 1; id <= 5; ++id) engine.Disconnect(id);
  for (char c = 'a'; c < 'a' + 6; ++c) {
    const std::string key(1, c);
    std::vector<Outgoing> replies;
    ASSERT_TRUE(engine.Apply(1, DeleteKeyRequest{key}, replies));
    ASSERT_TRUE(engine.Apply(1, QueueLenRequest{key}, replies));
    for (auto left = std::get<NumberReply>(replies.back().reply).number; left > 0; --left) {
      ASSERT_TRUE(engine.Apply(1, QueuePopRequest{key}, replies));
    }
  }
  ASSERT_EQ(engine.bytes(), 0u);
}

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
    SortKeys(replies);
    ASSERT_TRUE(replies == expected);
    ASSERT_EQ(engine.key_count(), model.key_count());
  }
  ExpectEmptiable(engine);
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
