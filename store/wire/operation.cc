#include "store/wire/operation.h"

namespace rankrun::store {
namespace {

void BuildMultiSet(Parts p, Request& request) {
  auto& entries = request.emplace<MultiSetRequest>().entries;
  entries.reserve(p.strings.size() / 2);
  for (size_t i = 0; i + 1 < p.strings.size(); i += 2) {
    entries.emplace_back(std::move(p.strings[i]), std::move(p.strings[i + 1]));
  }
}

// Builders of requests that consist of a key, a key and a value, a key and a
// number, keys, or nothing.
template <typename R>
void BuildKey(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0])});
}
template <typename R>
void BuildKeyAndValue(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0]), std::move(p.strings[1])});
}
template <typename R>
void BuildKeyAndNumber(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0]), static_cast<int64_t>(p.number)});
}
template <typename R>
void BuildKeys(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings)});
}
template <typename R>
void BuildEmpty(Parts, Request& request) {
  request.emplace<R>();
}

void BuildCompareSet(Parts p, Request& request) {
  request.emplace<CompareSetRequest>(
      CompareSetRequest{std::move(p.strings[0]), std::move(p.strings[1]), std::move(p.strings[2])});
}

void BuildPing(Parts p, Request& request) {
  request.emplace<PingRequest>(PingRequest{static_cast<uint32_t>(p.number)});
}

// Row i describes opcode i.
constexpr Operation kOperations[] = {
    {Opcode::kValidate, "VALIDATE", {}, nullptr},
    {Opcode::kSet, SetRequest::kName, {Field::kKey, Field::kValue}, BuildKeyAndValue<SetRequest>},
    {Opcode::kCompareSet,
     CompareSetRequest::kName,
     {Field::kKey, Field::kValue, Field::kValue},
     BuildCompareSet},
    {Opcode::kGet, GetRequest::kName, {Field::kKey}, BuildKey<GetRequest>},
    {Opcode::kAdd, AddRequest::kName, {Field::kKey, Field::kNumber}, BuildKeyAndNumber<AddRequest>},
    {Opcode::kCheck, CheckRequest::kName, {Field::kKeys}, BuildKeys<CheckRequest>},
    {Opcode::kWait, WaitRequest::kName, {Field::kKeys}, BuildKeys<WaitRequest>},
    {Opcode::kGetNumKeys, GetNumKeysRequest::kName, {}, BuildEmpty<GetNumKeysRequest>},
    {Opcode::kDeleteKey, DeleteKeyRequest::kName, {Field::kKey}, BuildKey<DeleteKeyRequest>},
    {Opcode::kAppend,
     AppendRequest::kName,
     {Field::kKey, Field::kValue},
     BuildKeyAndValue<AppendRequest>},
    {Opcode::kMultiGet, MultiGetRequest::kName, {Field::kKeys}, BuildKeys<MultiGetRequest>},
    {Opcode::kMultiSet, MultiSetRequest::kName, {Field::kEntries}, BuildMultiSet},
    {Opcode::kCancelWait, CancelWaitRequest::kName, {}, BuildEmpty<CancelWaitRequest>},
    {Opcode::kPing, PingRequest::kName, {Field::kNonce}, BuildPing},
    {Opcode::kQueuePush,
     QueuePushRequest::kName,
     {Field::kKey, Field::kValue},
     BuildKeyAndValue<QueuePushRequest>},
    {Opcode::kQueuePop, QueuePopRequest::kName, {Field::kKey}, BuildKey<QueuePopRequest>},
    {Opcode::kQueueLen, QueueLenRequest::kName, {Field::kKey}, BuildKey<QueueLenRequest>},
    {Opcode::kListKeys, ListKeysRequest::kName, {}, BuildEmpty<ListKeysRequest>},
    {Opcode::kBarrier,
     BarrierRequest::kName,
     {Field::kKey, Field::kNumber},
     BuildKeyAndNumber<BarrierRequest>},
    {Opcode::kWatchKey, WatchKeyRequest::kName, {Field::kKey}, BuildKey<WatchKeyRequest>},
};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

}  // namespace

const Operation& OperationOf(Opcode opcode) { return kOperations[static_cast<size_t>(opcode)]; }

}  // namespace rankrun::store
