#include <cstring>

#include "base/check.h"
#include "store/wire/opcode.h"
#include "store/wire/wire.h"

namespace rankrun::store {
namespace {

template <typename T>
void AppendInteger(std::string& out, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

void AppendString(std::string& out, std::string_view text) {
  AppendInteger(out, static_cast<uint64_t>(text.size()));
  out += text;
}

struct RequestWriter {
  std::string& out;

  void Begin(Opcode opcode) { out += static_cast<char>(opcode); }
  void KeyOnly(Opcode opcode, const std::string& key) {
    Begin(opcode);
    AppendString(out, key);
  }
  void KeyAndValue(Opcode opcode, const std::string& key, const std::string& value) {
    KeyOnly(opcode, key);
    AppendString(out, value);
  }
  void KeyAndNumber(Opcode opcode, const std::string& key, int64_t number) {
    KeyOnly(opcode, key);
    AppendInteger(out, number);
  }
  void Keys(Opcode opcode, const std::vector<std::string>& keys) {
    Begin(opcode);
    AppendInteger(out, static_cast<uint64_t>(keys.size()));
    for (const std::string& key : keys) AppendString(out, key);
  }

  void operator()(const SetRequest& r) { KeyAndValue(Opcode::kSet, r.key, r.value); }
  void operator()(const CompareSetRequest& r) {
    KeyAndValue(Opcode::kCompareSet, r.key, r.expected);
    AppendString(out, r.desired);
  }
  void operator()(const GetRequest& r) { KeyOnly(Opcode::kGet, r.key); }
  void operator()(const AddRequest& r) { KeyAndNumber(Opcode::kAdd, r.key, r.delta); }
  void operator()(const CheckRequest& r) { Keys(Opcode::kCheck, r.keys); }
  void operator()(const WaitRequest& r) { Keys(Opcode::kWait, r.keys); }
  void operator()(const DeleteKeyRequest& r) { KeyOnly(Opcode::kDeleteKey, r.key); }
  void operator()(const CancelWaitRequest&) { Begin(Opcode::kCancelWait); }
  void operator()(const PingRequest& r) {
    Begin(Opcode::kPing);
    AppendInteger(out, r.nonce);
  }
  void operator()(const GetNumKeysRequest&) { Begin(Opcode::kGetNumKeys); }
  void operator()(const ListKeysRequest&) { Begin(Opcode::kListKeys); }
  void operator()(const AppendRequest& r) { KeyAndValue(Opcode::kAppend, r.key, r.value); }
  void operator()(const MultiGetRequest& r) { Keys(Opcode::kMultiGet, r.keys); }
  void operator()(const MultiSetRequest& r) {
    Begin(Opcode::kMultiSet);
    AppendInteger(out, static_cast<uint64_t>(r.entries.size()));
    for (const auto& [key, value] : r.entries) {
      AppendString(out, key);
      AppendString(out, value);
    }
  }
  void operator()(const QueuePushRequest& r) { KeyAndValue(Opcode::kQueuePush, r.key, r.value); }
  void operator()(const QueuePopRequest& r) { KeyOnly(Opcode::kQueuePop, r.key); }
  void operator()(const QueueLenRequest& r) { KeyOnly(Opcode::kQueueLen, r.key); }
  void operator()(const BarrierRequest& r) { KeyAndNumber(Opcode::kBarrier, r.key, r.world_size); }
  void operator()(const WatchKeyRequest&) {
    RANKRUN_CHECK(false, "WATCH_KEY is not in the current dialect");
  }
};

struct ReplyWriter {
  std::string& out;

  void operator()(const ValueReply& reply) { AppendString(out, reply.value); }
  void operator()(const NumberReply& reply) { AppendInteger(out, reply.number); }
  void operator()(CheckReply reply) { out += static_cast<char>(reply); }
  void operator()(WaitReply reply) { out += static_cast<char>(reply); }
  void operator()(const PingReply& reply) { AppendInteger(out, reply.nonce); }
  void operator()(const ValuesReply& reply) {
    for (const std::string& value : reply.values) AppendString(out, value);
  }
  void operator()(const KeysReply& reply) {
    AppendInteger(out, static_cast<int64_t>(reply.keys.size()));
    for (const std::string& key : reply.keys) AppendString(out, key);
  }
  void operator()(const PopReply& reply) {
    AppendInteger(out, reply.length_before);
    if (reply.value) AppendString(out, *reply.value);
  }
  void operator()(WatchReply reply) { out += static_cast<char>(reply); }
  void operator()(const NoticeReply& reply) {
    out += static_cast<char>(reply.change);
    AppendString(out, reply.key);
    AppendString(out, reply.old_value);
    AppendString(out, reply.new_value);
  }
};

}  // namespace

void AppendReply(std::string& out, const Reply& reply) { std::visit(ReplyWriter{out}, reply); }

std::string EncodeValidate() {
  std::string out(1, static_cast<char>(Opcode::kValidate));
  AppendInteger(out, kValidateMagic);
  return out;
}

std::string EncodeRequest(const Request& request) {
  std::string out;
  std::visit(RequestWriter{out}, request);
  return out;
}

}  // namespace rankrun::store
