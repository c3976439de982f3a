#include <algorithm>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <rankrun/objects.h>

#include "base/clock.h"
#include "comm/arguments.h"
#include "comm/group.h"
#include "comm/process_group_access.h"
#include "comm/throw.h"
#include "comm/time_left.h"

namespace rankrun {
namespace {

using comm::Group;
using Kind = comm::Operation::Kind;
using comm::Unwrap;

ConstTensor Bytes(const Object& object) { return {object.data(), DType::kUInt8, object.size()}; }
Tensor Bytes(Object& object) { return {object.data(), DType::kUInt8, object.size()}; }

// A call of one of the functions below: what its halves have in common.
struct ObjectCall {
  Group& group;
  const char* name;
  Timeout timeout;
  TimePoint since = std::chrono::steady_clock::now();

  std::string Text() const { return comm::CallIn(group, name); }
  // The time-out of the second half: what the first has left.
  Timeout Left() const {
    return comm::TimeLeft(since + comm::Bounded(timeout.value_or(group.identity().timeout)));
  }
};

// Whether this rank takes part.
bool IsInvolved(const ObjectCall& call) {
  if (call.group.is_member()) return true;
  Unwrap(call.group.Uninvolved(call.name));
  return false;
}

// What cannot be sent must not be learned by the others as a hang: the size is
// told all the same, and refused by all who hear it.
void CheckSize(const ObjectCall& call, uint64_t bytes, int global_rank) {
  if (bytes <= kMaxObjectBytes) return;
  comm::Throw({ErrorCode::kInvalid, call.Text() + ": the object of rank " +
                                        std::to_string(global_rank) + " has " +
                                        std::to_string(bytes) + " bytes: want at most " +
                                        std::to_string(kMaxObjectBytes)});
}

// In place of the sizes: so many objects, which is the wrong number.
constexpr uint64_t kWrongNumber = uint64_t{1} << 63;

// As a size that is too large: all ranks learn it, and the group is sound.
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

// What `make` makes, of so many bytes, for a collective of that kind. Without
// the memory for it this rank cannot take part, and the others would wait.
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

// Behind `first`, where there is any.
Object Concatenated(std::span<const Object> objects, std::span<const uint64_t> first = {}) {
  const auto start = std::as_bytes(first);
  std::size_t bytes = start.size();
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
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    objects[i].assign(next, end);
    next = end;
  }
}

// A root that there is not is refused by the collective that follows, for all ranks.
bool IsRoot(const ProcessGroup& group, Peer root) {
  const auto rank = comm::GroupRankIn(group.global_ranks(), root);
  return rank && *rank == group.group_rank();
}

int NameOf(const ProcessGroup& group, Peer peer) {
  const int rank = Unwrap(comm::GroupRankIn(group.global_ranks(), peer));
  return group.global_ranks()[static_cast<std::size_t>(rank)];
}

// The sizes of all ranks' objects, by group rank.
std::vector<uint64_t> GatherSizes(ProcessGroup& group, const ObjectCall& call, uint64_t own,
                                  Timeout timeout) {
  std::vector<uint64_t> sizes(static_cast<std::size_t>(group.world_size()));
  const std::vector<uint64_t> mine{own};
  group.AllGatherInto(sizes, mine, timeout);
  for (std::size_t r = 0; r < sizes.size(); ++r) CheckSize(call, sizes[r], group.global_ranks()[r]);
  return sizes;
}

std::vector<Object> Sized(Kind kind, const ObjectCall& call, std::span<const uint64_t> sizes) {
  return MadeFor(kind, call, SumOf(sizes), [&] {
    std::vector<Object> objects;
    for (const uint64_t size : sizes) objects.emplace_back(size);
    return objects;
  });
}

std::vector<Tensor> TensorsOf(std::vector<Object>& objects) {
  std::vector<Tensor> tensors;
  for (Object& object : objects) tensors.push_back(Bytes(object));
  return tensors;
}

// Objects are sent as two messages: this one, whose size every receiver knows,
// then their sizes and bytes. So who asks for another number can refuse just
// what was sent with it.
enum Head : std::size_t { kNumber, kBytes, kLargest, kHeadSize };
// In place of the bytes: the sender has no memory to put them together, and none follow.
constexpr uint64_t kNoMemory = ~uint64_t{0};

std::vector<uint64_t> HeadOf(std::span<const uint64_t> sizes) {
  std::vector<uint64_t> head(kHeadSize);
  head[kNumber] = sizes.size();
  head[kBytes] = sizes.size_bytes() + SumOf(sizes);
  head[kLargest] = LargestOf(sizes);
  return head;
}

// Takes what follows a head, and drops it. A sender that still waits learns how
// many objects are wanted by the size of what is asked for.
void RefuseObjects(const ObjectCall& call, std::size_t wanted, GlobalRank sender, uint64_t tag) {
  std::vector<uint64_t> none(wanted);
  const auto refused = call.group.Recv(none, sender, tag, call.Left());
  if (!refused && refused.error().code != ErrorCode::kInvalid) comm::Throw(refused.error());
}

Error NoMemoryOf(const ObjectCall& call, int sender) {
  return {ErrorCode::kExhausted,
          call.Text() + ": rank " + std::to_string(sender) + " has no memory to send its objects"};
}

// "rank 0 sends 1 object, rank 2 wants 3".
Error OtherNumber(const ObjectCall& call, uint64_t sent, int sender, std::size_t wanted) {
  return {ErrorCode::kInvalid, call.Text() + ": rank " + std::to_string(sender) + " sends " +
                                   std::to_string(sent) + (sent == 1 ? " object" : " objects") +
                                   ", rank " + std::to_string(call.group.identity().global_rank) +
                                   " wants " + std::to_string(wanted)};
}

}  // namespace

void BroadcastObjects(ProcessGroup& group, std::span<Object> objects, Peer root, Timeout timeout) {
  const ObjectCall call{comm::GroupOf(group), "BroadcastObjects", timeout};
  if (!IsInvolved(call)) return;
  const bool is_root = IsRoot(group, root);
  std::vector<uint64_t> sizes = SizesOf(objects);
  Object all;
  if (is_root && LargestOf(sizes) <= kMaxObjectBytes) {
    all = MadeFor(Kind::kBroadcast, call, SumOf(sizes), [&] { return Concatenated(objects); });
  }
  group.Broadcast(sizes, root, timeout);
  CheckSize(call, LargestOf(sizes), NameOf(group, root));
  const uint64_t bytes = SumOf(sizes);
  if (!is_root) all = MadeFor(Kind::kBroadcast, call, bytes, [&] { return Object(bytes); });
  group.Broadcast(Bytes(all), root, call.Left());
  if (!is_root) Distribute(all, sizes, objects);
}

std::vector<Object> AllGatherObject(ProcessGroup& group, const Object& object, Timeout timeout) {
  const ObjectCall call{comm::GroupOf(group), "AllGatherObject", timeout};
  if (!IsInvolved(call)) return {};
  const std::vector<uint64_t> sizes = GatherSizes(group, call, object.size(), timeout);
  std::vector<Object> objects = Sized(Kind::kAllGather, call, sizes);
  group.AllGather(TensorsOf(objects), Bytes(object), call.Left());
  return objects;
}

std::vector<Object> GatherObject(ProcessGroup& group, const Object& object, Peer root,
                                 Timeout timeout) {
  const ObjectCall call{comm::GroupOf(group), "GatherObject", timeout};
  if (!IsInvolved(call)) return {};
  const std::vector<uint64_t> sizes = GatherSizes(group, call, object.size(), timeout);
  std::vector<Object> objects;
  if (IsRoot(group, root)) objects = Sized(Kind::kGather, call, sizes);
  group.Gather(TensorsOf(objects), Bytes(object), root, call.Left());
  return objects;
}

Object ScatterObjects(ProcessGroup& group, std::span<const Object> objects, Peer root,
                      Timeout timeout) {
  const ObjectCall call{comm::GroupOf(group), "ScatterObjects", timeout};
  if (!IsInvolved(call)) return {};
  std::vector<uint64_t> sizes(static_cast<std::size_t>(group.world_size()));
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
  const uint64_t bytes = sizes[static_cast<std::size_t>(group.group_rank())];
  Object own = MadeFor(Kind::kScatter, call, bytes, [&] { return Object(bytes); });
  group.Scatter(Bytes(own), inputs, root, call.Left());
  return own;
}

void SendObjects(ProcessGroup& group, std::span<const Object> objects, Peer destination, int tag,
                 Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  const ObjectCall call{inner, "SendObjects", timeout};
  const uint64_t own_tag = comm::kObjectTags + comm::CheckedTag(inner, call.name, tag);
  if (!IsInvolved(call)) return;
  const std::vector<uint64_t> sizes = SizesOf(objects);
  std::vector<uint64_t> head = HeadOf(sizes);
  const uint64_t bytes = head[kBytes];
  std::optional<Object> all;
  if (head[kLargest] <= kMaxObjectBytes) {
    all = IfThereIsMemory([&] { return Concatenated(objects, sizes); });
    if (!all) head[kBytes] = kNoMemory;
  }
  Unwrap(inner.Send(head, destination, own_tag, timeout));
  CheckSize(call, head[kLargest], group.global_rank());
  if (!all) comm::Throw(NoMemory(bytes).In(call.Text()));
  Unwrap(inner.Send(Bytes(*all), destination, own_tag, call.Left()));
}

int RecvObjects(ProcessGroup& group, std::span<Object> objects, Source source, int tag,
                Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  const ObjectCall call{inner, "RecvObjects", timeout};
  const uint64_t own_tag = comm::kObjectTags + comm::CheckedTag(inner, call.name, tag);
  if (!IsInvolved(call)) return -1;
  std::vector<uint64_t> head(kHeadSize);
  const int sender = Unwrap(inner.Recv(head, source, own_tag, timeout));
  CheckSize(call, head[kLargest], sender);
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
  const auto first = std::as_writable_bytes(std::span(sizes));
  std::copy_n(all->begin(), first.size(), first.begin());
  Distribute(std::span(*all).subspan(first.size()), sizes, objects);
  return sender;
}

}  // namespace rankrun
