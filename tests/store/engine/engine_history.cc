#include "tests/store/engine/engine_history.h"

#include <algorithm>

#include "store/engine/engine_sizes.h"
#include "store/wire/wire.h"
#include "tests/store/engine/engine_model.h"

namespace rankrun::store {
namespace {

// Few connections and keys, so that they collide often.
constexpr ConnectionId kConnections = 5;
const std::string kKeys[] = {"a", "b", "c", "d", "e", "f", "", "a key that is longer than others"};
const std::string kValues[] = {
    "", "1", "-2", "x", " 3y", "9223372036854775807", "-9223372036854775808", "+-1", "\t+7", "- 7"};

std::string Key(Choices& choices) { return kKeys[choices.Below(std::size(kKeys))]; }

std::string Value(Choices& choices) {
  size_t choice = choices.Below(std::size(kValues) + 1);
  if (choice < std::size(kValues)) return kValues[choice];
  return std::string(choices.Below(256), 'v');
}

std::vector<std::string> SomeKeys(Choices& choices) {
  std::vector<std::string> keys(choices.Below(4));
  for (std::string& key : keys) key = Key(choices);
  return keys;
}

MultiSetRequest AnyMultiSet(Choices& choices) {
  MultiSetRequest request;
  for (size_t left = choices.Below(4); left > 0; --left) {
    std::string key = Key(choices);
    request.entries.emplace_back(std::move(key), Value(choices));
  }
  return request;
}

int64_t Small(Choices& choices) { return static_cast<int64_t>(choices.Below(9)) - 4; }

// Requests are built in braces, because braces evaluate arguments in order.
Request AnyRequest(Choices& choices) {
  switch (choices.Below(24)) {
    case 0:
      return SetRequest{Key(choices), Value(choices)};
    case 1:
      return CompareSetRequest{Key(choices), Value(choices), Value(choices)};
    case 2:
      return GetRequest{Key(choices)};
    case 3:
      return AddRequest{Key(choices), Small(choices)};
    case 4:
      return CheckRequest{SomeKeys(choices)};
    case 5:
      return CancelWaitRequest{};
    case 6:
      return PingRequest{static_cast<uint32_t>(choices.Below(256))};
    case 7:
      return AppendRequest{Key(choices), Value(choices)};
    case 8:
      return MultiGetRequest{SomeKeys(choices)};
    case 9:
      return AnyMultiSet(choices);
    case 10:
      return GetNumKeysRequest{};
    case 11:
      return ListKeysRequest{};
    case 12:
      return QueuePushRequest{Key(choices), Value(choices)};
    case 13:
    case 14:
      return QueuePopRequest{Key(choices)};
    case 15:
      return QueueLenRequest{Key(choices)};
    case 16:
      return BarrierRequest{Key(choices), Small(choices)};
    case 17:
    case 18:
    case 19:
      return WaitRequest{SomeKeys(choices)};
    case 20:
      return WatchKeyRequest{Key(choices)};
    default:
      return DeleteKeyRequest{Key(choices)};
  }
}

// Sorts listed keys, because the engine lists them in no order.
void SortKeys(std::vector<Outgoing>& replies) {
  for (Outgoing& outgoing : replies) {
    if (auto* list = std::get_if<KeysReply>(&outgoing.reply)) {
      std::sort(list->keys.begin(), list->keys.end());
    }
  }
}

size_t NoticeBytes(const std::vector<Outgoing>& replies) {
  size_t bytes = 0;
  for (const Outgoing& outgoing : replies) {
    if (auto* notice = std::get_if<NoticeReply>(&outgoing.reply)) {
      bytes += notice->key.size() + notice->old_value.size() + notice->new_value.size();
    }
  }
  return bytes;
}

std::map<std::string, std::vector<ConnectionId>> SortedWaits(const Engine& engine) {
  std::map<std::string, std::vector<ConnectionId>> waits;
  for (Engine::Waited& waited : engine.ListWaits()) {
    std::sort(waited.waiters.begin(), waited.waiters.end());
    waits.emplace(std::move(waited.name), std::move(waited.waiters));
  }
  return waits;
}

// Number of names that a request can create or grow.
struct GrowingNames {
  size_t operator()(const WaitRequest& r) const { return r.keys.size(); }
  size_t operator()(const MultiSetRequest& r) const { return r.entries.size(); }
  size_t operator()(const SetRequest&) const { return 1; }
  size_t operator()(const CompareSetRequest&) const { return 1; }
  size_t operator()(const AddRequest&) const { return 1; }
  size_t operator()(const AppendRequest&) const { return 1; }
  size_t operator()(const QueuePushRequest&) const { return 1; }
  size_t operator()(const BarrierRequest&) const { return 1; }
  size_t operator()(const auto&) const { return 0; }
};

// Upper bound of the growth of a store by `request`; 0 if it cannot grow.
size_t LargestGrowth(const Request& request) {
  constexpr size_t kMaxNumber = 20;
  constexpr size_t kPerName =
      kEntryBytes + kExtrasBytes + kWaitBytes + kWaiterBytes + kItemBytes + kMaxNumber;
  if (auto* watch = std::get_if<WatchKeyRequest>(&request)) return kPerName + watch->key.size();
  size_t names = std::visit(GrowingNames{}, request);
  return names == 0 ? 0 : names * kPerName + EncodeRequest(request).size();
}

// Runs the same requests on an engine and on its model.
class History {
 public:
  explicit History(Choices& choices)
      : largest_bytes_(AnyLimit(choices, 32)),
        reply_bytes_(AnyLimit(choices, 4)),
        largest_reply_bytes_(std::min(reply_bytes_, largest_bytes_)),
        engine_(largest_bytes_, reply_bytes_) {}

  std::string Step(Choices& choices);
  std::string TakeAllOut();

 private:
  // No limit in a quarter of the cases.
  static size_t AnyLimit(Choices& choices, size_t unit) {
    size_t choice = choices.Below(256);
    return choice < 64 ? size_t{1} << 30 : (choice - 63) * unit;
  }
  std::string Ask(ConnectionId from, const Request& request);
  std::string Compare() const;
  void Disconnect(ConnectionId connection) {
    engine_.Disconnect(connection);
    model_.Disconnect(connection);
  }

  const size_t largest_bytes_;
  const size_t reply_bytes_;          // limit of a reply that the engine is given
  const size_t largest_reply_bytes_;  // limit that holds: no reply is larger than a full store
  Engine engine_;
  EngineModel model_;
};

std::string History::Step(Choices& choices) {
  ConnectionId from = 1 + choices.Below(kConnections);
  size_t event = choices.Below(32);
  if (event == 1) {
    engine_.Clear();
    model_ = {};
  } else if (event == 2) {
    Disconnect(from);
  } else if (std::string wrong = Ask(from, AnyRequest(choices)); !wrong.empty()) {
    return wrong;
  }
  return Compare();
}

std::string History::Ask(ConnectionId from, const Request& request) {
  std::string name(kRequestNames[request.index()]);
  bool fits = engine_.bytes() + LargestGrowth(request) <= largest_bytes_;
  bool reply_fits = model_.LimitedReplyBytes(request) <= largest_reply_bytes_;
  bool notices_fit = model_.LargestNoticeBytes(request) <= largest_reply_bytes_;
  std::vector<Outgoing> replies;
  std::vector<Outgoing> expected;
  auto applied = engine_.Apply(from, Request(request), replies);
  if (!applied) Disconnect(from);
  if (!applied && applied.error().code == ErrorCode::kSystem) {
    if (fits && reply_fits && notices_fit) return name + " is refused: " + applied.error().message;
    return replies.empty() ? "" : name + " is refused and answered";
  }
  if (!reply_fits) return name + " has a reply over the limit";
  bool accepted = model_.Apply(from, request, expected);
  if (!accepted) model_.Disconnect(from);
  if (bool(applied) != accepted) return name + (accepted ? " is refused" : " is accepted");
  SortKeys(replies);
  if (NoticeBytes(replies) > largest_reply_bytes_) return name + " causes notices over the limit";
  return replies == expected ? "" : name + " causes other replies";
}

std::string History::Compare() const {
  if (engine_.bytes() > largest_bytes_) return "the store is over its limit";
  if (engine_.bytes() != model_.bytes()) {
    return "bytes are " + std::to_string(engine_.bytes()) + " instead of " +
           std::to_string(model_.bytes());
  }
  if (engine_.key_count() != model_.key_count()) return "the number of keys differs";
  if (engine_.queue_count() != model_.queue_count()) return "the number of queues differs";
  return SortedWaits(engine_) == model_.ListWaits() ? "" : "the waits differ";
}

std::string History::TakeAllOut() {
  for (ConnectionId id = 1; id <= kConnections; ++id) Disconnect(id);
  std::vector<Outgoing> replies;
  for (const std::string& key : kKeys) {
    if (auto gone = engine_.Apply(1, DeleteKeyRequest{key}, replies); !gone) return "cannot delete";
    do {
      auto popped = engine_.Apply(1, QueuePopRequest{key}, replies);
      if (!popped) return "cannot pop";
    } while (std::get<PopReply>(replies.back().reply).value);
  }
  if (engine_.key_count() + engine_.queue_count() > 0) return "keys or queues are left";
  return engine_.bytes() == 0 ? "" : std::to_string(engine_.bytes()) + " bytes are left";
}

}  // namespace

std::string CheckEngineHistory(Choices& choices) {
  History history(choices);
  for (int step = 1; !choices.are_over(); ++step) {
    std::string wrong = history.Step(choices);
    if (!wrong.empty()) return "step " + std::to_string(step) + ": " + wrong;
  }
  return history.TakeAllOut();
}

}  // namespace rankrun::store
