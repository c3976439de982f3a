#include <algorithm>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <rankrun/objects.h>

#include "base/clock.h"
#include "comm/core/part_of.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/group/arguments.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"

namespace rankrun {
namespace {

using comm::Group;
using Kind = comm::Operation::Kind;
using comm::Unwrap;

ConstTensor Bytes(const Object& object) { return {object.data(), DType::kUInt8, object.size()}; }
Tensor Bytes(Object& object) { return {object.data(), DType::kUInt8, object.size()}; }

// State that the two halves of a call share.
struct ObjectCall {
  Group& group;
  const char* name;
  Timeout timeout;
  TimePoint since = std::chrono::steady_clock::now();

  std::string Text() const { return comm::CallIn(group, name); }
  // Returns the time-out of the second half: the time that the first half has
  // left.
  Timeout Left() const {
    return comm::TimeLeft(since + comm::Bounded(timeout.value_or(group.identity().timeout)));
  }
};

// Returns whether this rank is a member.
bool IsInvolved(const ObjectCall& call) {
  if (call.group.is_member()) return true;
  Unwrap(call.group.Uninvolved(call.name));
  return false;
}

// Throws if an object is too large. The sender sends the size of such an
// object, too, so that all ranks fail here instead of waiting for the data.
void CheckSize(const ObjectCall& call, uint64_t bytes, int global_rank) {
  if (bytes <= kMaxObjectBytes) return;
  comm::Throw({ErrorCode::kInvalid, call.Text() + ": the object of rank " +
                                        std::to_string(global_rank) + " has " +
                                        std::to_string(bytes) + " bytes: want at most " +
                                        std::to_string(kMaxObjectBytes)});
}

// Added to a wrong number of objects, which is sent in place of the first size.
constexpr uint64_t kWrongNumber = uint64_t{1} << 63;

// Throws if the root has passed a wrong number of objects. All ranks get this
// error, and the group stays usable.
void CheckNumber(const ObjectCall& call, uint64_t first_size, int global_rank) {
  if (first_size < kWrongNumber) return;
  comm::Throw({ErrorCode::kInvalid,
               call.Text() + ": rank " + std::to_string(global_rank) + " has " +
                   std::to_string(first_size - kWrongNumber) + " objects: want " +
                   std::to_string(call.group.identity().world_size()) + ", one per rank"});
}

Error NoMemory(uint64_t bytes) {
  return {ErrorCode::kExhausted, "no memory for " + std::to_string(bytes) + " bytes of objects"};
}

template <typename Make>
auto IfThereIsMemory(Make make) -> std::optional<decltype(make())> try {
  return make();
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

// Returns the result of `make`, which allocates `bytes` for a collective of
// that kind. Without memory this rank declines the collective, because the
// others would wait for it.
template <typename Make>
auto MadeFor(Kind kind, const ObjectCall& call, uint64_t bytes, Make make) {
  auto made = IfThereIsMemory(make);
  if (!made) comm::Throw(call.group.Decline({.kind = kind, .count = bytes}, NoMemory(bytes)));
  return *std::move(made);
}

uint64_t SumOf(std::span<const uint64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
}

uint64_t LargestOf(std::span<const uint64_t> sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

std::vector<uint64_t> SizesOf(std::span<const Object> objects) {
  std::vector<uint64_t> sizes;
  for (const Object& object : objects) sizes.push_back(object.size());
  return sizes;
}

// Returns the bytes of `first`, followed by those of all objects.
Object Concatenated(std::span<const Object> objects, std::span<const uint64_t> first = {}) {
  auto start = std::as_bytes(first);
  size_t bytes = start.size();
  for (const Object& object : objects) bytes += object.size();
  Object all;
  all.reserve(bytes);
  all.assign(start.begin(), start.end());
  for (const Object& object : objects) all.insert(all.end(), object.begin(), object.end());
  return all;
}

void Distribute(std::span<const std::byte> all, std::span<const uint64_t> sizes,
                std::span<Object> objects) {
  auto next = all.begin();
  for (size_t i = 0; i < objects.size(); ++i) {
    auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    objects[i].assign(next, end);
    next = end;
  }
}

// Returns whether this rank is the root. An invalid root fails in the next
// collective, on all ranks.
bool IsRoot(const ProcessGroup& group, Peer root) {
  auto rank = comm::GroupRankIn(group.global_ranks(), root);
  return rank && *rank == group.group_rank();
}

int NameOf(const ProcessGroup& group, Peer peer) {
  int rank = Unwrap(comm::GroupRankIn(group.global_ranks(), peer));
  return group.global_ranks()[static_cast<size_t>(rank)];
}

// Returns the sizes of all ranks' objects, by group rank.
std::vector<uint64_t> GatherSizes(ProcessGroup& group, const ObjectCall& call, uint64_t own,
                                  Timeout timeout) {
  std::vector<uint64_t> sizes(static_cast<size_t>(group.world_size()));
  std::vector<uint64_t> mine{own};
  group.AllGatherInto(sizes, mine, timeout);
  for (size_t r = 0; r < sizes.size(); ++r) CheckSize(call, sizes[r], group.global_ranks()[r]);
  return sizes;
}

std::vector<Object> Sized(Kind kind, const ObjectCall& call, std::span<const uint64_t> sizes) {
  return MadeFor(kind, call, SumOf(sizes), [&] {
    std::vector<Object> objects;
    for (uint64_t size : sizes) objects.emplace_back(size);
    return objects;
  });
}

std::vector<Tensor> TensorsOf(std::vector<Object>& objects) {
  std::vector<Tensor> tensors;
  for (Object& object : objects) tensors.push_back(Bytes(object));
  return tensors;
}

// Objects are sent as two messages: a head of fixed size, then their sizes and
// bytes. So a receiver that expects another number can refuse exactly the
// second message.
enum Head : size_t { kNumber, kBytes, kMax, kHeadSize };
// Value of kBytes if the sender has no memory for the second message, which is
// not sent.
constexpr uint64_t kNoMemory = ~uint64_t{0};

std::vector<uint64_t> HeadOf(std::span<const uint64_t> sizes) {
  std::vector<uint64_t> head(kHeadSize);
  head[kNumber] = sizes.size();
  head[kBytes] = sizes.size_bytes() + SumOf(sizes);
  head[kMax] = LargestOf(sizes);
  return head;
}

// Refuses the second message by a receive that cannot match it: one uint64 per
// expected object. If the sender still waits, its error shows this number.
void RefuseObjects(const ObjectCall& call, size_t wanted, GlobalRank sender, uint64_t tag) {
  std::vector<uint64_t> none(wanted);
  auto refused = call.group.Recv(none, sender, tag, call.Left());
  if (!refused && refused.error().code != ErrorCode::kInvalid) comm::Throw(refused.error());
}

Error NoMemoryOf(const ObjectCall& call, int sender) {
  return {ErrorCode::kExhausted,
          call.Text() + ": rank " + std::to_string(sender) + " has no memory to send its objects"};
}

// Returns "rank 0 sends 1 object, rank 2 expects 3".
Error OtherNumber(const ObjectCall& call, uint64_t sent, int sender, size_t wanted) {
  return {ErrorCode::kInvalid, call.Text() + ": rank " + std::to_string(sender) + " sends " +
                                   std::to_string(sent) + (sent == 1 ? " object" : " objects") +
                                   ", rank " + std::to_string(call.group.identity().global_rank) +
                                   " expects " + std::to_string(wanted)};
}

}  // namespace

void BroadcastObjects(ProcessGroup& group, std::span<Object> objects, Peer root, Timeout timeout) {
  ObjectCall call{comm::GroupOf(group), "BroadcastObjects", timeout};
  const comm::PartOf part_of(ProgramCall::kBroadcastObjects);
  if (!IsInvolved(call)) return;
  bool is_root = IsRoot(group, root);
  std::vector<uint64_t> sizes = SizesOf(objects);
  Object all;
  if (is_root && LargestOf(sizes) <= kMaxObjectBytes) {
    all = MadeFor(Kind::kBroadcast, call, SumOf(sizes), [&] { return Concatenated(objects); });
  }
  group.Broadcast(sizes, root, timeout);
  CheckSize(call, LargestOf(sizes), NameOf(group, root));
  uint64_t bytes = SumOf(sizes);
  if (!is_root) all = MadeFor(Kind::kBroadcast, call, bytes, [&] { return Object(bytes); });
  group.Broadcast(Bytes(all), root, call.Left());
  if (!is_root) Distribute(all, sizes, objects);
}

std::vector<Object> AllGatherObject(ProcessGroup& group, const Object& object, Timeout timeout) {
  ObjectCall call{comm::GroupOf(group), "AllGatherObject", timeout};
  const comm::PartOf part_of(ProgramCall::kAllGatherObject);
  if (!IsInvolved(call)) return {};
  std::vector<uint64_t> sizes = GatherSizes(group, call, object.size(), timeout);
  std::vector<Object> objects = Sized(Kind::kAllGather, call, sizes);
  group.AllGather(TensorsOf(objects), Bytes(object), call.Left());
  return objects;
}

std::vector<Object> GatherObject(ProcessGroup& group, const Object& object, Peer root,
                                 Timeout timeout) {
  ObjectCall call{comm::GroupOf(group), "GatherObject", timeout};
  const comm::PartOf part_of(ProgramCall::kGatherObject);
  if (!IsInvolved(call)) return {};
  std::vector<uint64_t> sizes = GatherSizes(group, call, object.size(), timeout);
  std::vector<Object> objects;
  if (IsRoot(group, root)) objects = Sized(Kind::kGather, call, sizes);
  group.Gather(TensorsOf(objects), Bytes(object), root, call.Left());
  return objects;
}

Object ScatterObjects(ProcessGroup& group, std::span<const Object> objects, Peer root,
                      Timeout timeout) {
  ObjectCall call{comm::GroupOf(group), "ScatterObjects", timeout};
  const comm::PartOf part_of(ProgramCall::kScatterObjects);
  if (!IsInvolved(call)) return {};
  std::vector<uint64_t> sizes(static_cast<size_t>(group.world_size()));
  std::vector<ConstTensor> inputs;
  if (IsRoot(group, root)) {
    for (const Object& object : objects) inputs.push_back(Bytes(object));
    if (objects.size() == sizes.size()) {
      sizes = SizesOf(objects);
    } else {
      sizes[0] = kWrongNumber + objects.size();
    }
  }
  group.Broadcast(sizes, root, timeout);
  CheckNumber(call, sizes[0], NameOf(group, root));
  CheckSize(call, LargestOf(sizes), NameOf(group, root));
  uint64_t bytes = sizes[static_cast<size_t>(group.group_rank())];
  Object own = MadeFor(Kind::kScatter, call, bytes, [&] { return Object(bytes); });
  group.Scatter(Bytes(own), inputs, root, call.Left());
  return own;
}

void SendObjects(ProcessGroup& group, std::span<const Object> objects, Peer destination, int tag,
                 Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  ObjectCall call{inner, "SendObjects", timeout};
  uint64_t own_tag = comm::kObjectTags + comm::CheckedTag(inner, call.name, tag);
  if (!IsInvolved(call)) return;
  std::vector<uint64_t> sizes = SizesOf(objects);
  std::vector<uint64_t> head = HeadOf(sizes);
  uint64_t bytes = head[kBytes];
  std::optional<Object> all;
  if (head[kMax] <= kMaxObjectBytes) {
    all = IfThereIsMemory([&] { return Concatenated(objects, sizes); });
    if (!all) head[kBytes] = kNoMemory;
  }
  Unwrap(inner.Send(head, destination, own_tag, timeout));
  CheckSize(call, head[kMax], group.global_rank());
  if (!all) comm::Throw(NoMemory(bytes).In(call.Text()));
  Unwrap(inner.Send(Bytes(*all), destination, own_tag, call.Left()));
}

int RecvObjects(ProcessGroup& group, std::span<Object> objects, Source source, int tag,
                Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  ObjectCall call{inner, "RecvObjects", timeout};
  uint64_t own_tag = comm::kObjectTags + comm::CheckedTag(inner, call.name, tag);
  if (!IsInvolved(call)) return -1;
  std::vector<uint64_t> head(kHeadSize);
  int sender = Unwrap(inner.Recv(head, source, own_tag, timeout));
  CheckSize(call, head[kMax], sender);
  if (head[kBytes] == kNoMemory) comm::Throw(NoMemoryOf(call, sender));
  if (head[kNumber] != objects.size()) {
    RefuseObjects(call, objects.size(), GlobalRank{sender}, own_tag);
    comm::Throw(OtherNumber(call, head[kNumber], sender, objects.size()));
  }
  auto all = IfThereIsMemory([&] { return Object(head[kBytes]); });
  if (!all) {
    RefuseObjects(call, 0, GlobalRank{sender}, own_tag);
    comm::Throw(NoMemory(head[kBytes]).In(call.Text()));
  }
  Unwrap(inner.Recv(Bytes(*all), GlobalRank{sender}, own_tag, call.Left()));
  std::vector<uint64_t> sizes(objects.size());
  auto first = std::as_writable_bytes(std::span(sizes));
  std::copy_n(all->begin(), first.size(), first.begin());
  Distribute(std::span(*all).subspan(first.size()), sizes, objects);
  return sender;
}

}  // namespace rankrun
