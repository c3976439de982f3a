#include "store/operation.h"

namespace rankrun::store {
namespace {

void BuildMultiSet(Parts p, Request& request) {
  auto& entries = request.emplace<MultiSetRequest>().entries;
  entries.reserve(p.strings.size() / 2);
  for (size_t i = 0; i + 1 < p.strings.size(); i += 2) {
    entries.emplace_back(std::move(p.strings[i]), std::move(p.strings[i + 1]));
  }
}

// One request that is made of a key; of a key and a value; of keys; of nothing.
template <typename R>
void OfKey(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0])});
}
template <typename R>
void OfKeyAndValue(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0]), std::move(p.strings[1])});
}
template <typename R>
void OfKeyAndNumber(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings[0]), static_cast<int64_t>(p.number)});
}
template <typename R>
void OfKeys(Parts p, Request& request) {
  request.emplace<R>(R{std::move(p.strings)});
}
template <typename R>
void OfNothing(Parts, Request& request) {
  request.emplace<R>();
}

void BuildCompareSet(Parts p, Request& request) {
  request.emplace<CompareSetRequest>(
      CompareSetRequest{std::move(p.strings[0]), std::move(p.strings[1]), std::move(p.strings[2])});
}

void BuildPing(Parts p, Request& request) {
  request.emplace<PingRequest>(PingRequest{static_cast<uint32_t>(p.number)});
}

// Row i is of opcode i.
constexpr Operation kOperations[] = {
    {Opcode::kValidate, "VALIDATE", {}, nullptr},
    {Opcode::kSet, SetRequest::kName, {Field::kKey, Field::kValue}, OfKeyAndValue<SetRequest>},
    {Opcode::kCompareSet,
     CompareSetRequest::kName,
     {Field::kKey, Field::kValue, Field::kValue},
     BuildCompareSet},
    {Opcode::kGet, GetRequest::kName, {Field::kKey}, OfKey<GetRequest>},
    {Opcode::kAdd, AddRequest::kName, {Field::kKey, Field::kNumber}, OfKeyAndNumber<AddRequest>},
    {Opcode::kCheck, CheckRequest::kName, {Field::kKeys}, OfKeys<CheckRequest>},
    {Opcode::kWait, WaitRequest::kName, {Field::kKeys}, OfKeys<WaitRequest>},
    {Opcode::kGetNumKeys, GetNumKeysRequest::kName, {}, OfNothing<GetNumKeysRequest>},
    {Opcode::kDeleteKey, DeleteKeyRequest::kName, {Field::kKey}, OfKey<DeleteKeyRequest>},
    {Opcode::kAppend,
     AppendRequest::kName,
     {Field::kKey, Field::kValue},
     OfKeyAndValue<AppendRequest>},
    {Opcode::kMultiGet, MultiGetRequest::kName, {Field::kKeys}, OfKeys<MultiGetRequest>},
    {Opcode::kMultiSet, MultiSetRequest::kName, {Field::kEntries}, BuildMultiSet},
    {Opcode::kCancelWait, CancelWaitRequest::kName, {}, OfNothing<CancelWaitRequest>},
    {Opcode::kPing, PingRequest::kName, {Field::kNonce}, BuildPing},
    {Opcode::kQueuePush,
     QueuePushRequest::kName,
     {Field::kKey, Field::kValue},
     OfKeyAndValue<QueuePushRequest>},
    {Opcode::kQueuePop, QueuePopRequest::kName, {Field::kKey}, OfKey<QueuePopRequest>},
    {Opcode::kQueueLen, QueueLenRequest::kName, {Field::kKey}, OfKey<QueueLenRequest>},
    {Opcode::kListKeys, ListKeysRequest::kName, {}, OfNothing<ListKeysRequest>},
    {Opcode::kBarrier,
     BarrierRequest::kName,
     {Field::kKey, Field::kNumber},
     OfKeyAndNumber<BarrierRequest>},
    {Opcode::kWatchKey, WatchKeyRequest::kName, {Field::kKey}, OfKey<WatchKeyRequest>},
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
