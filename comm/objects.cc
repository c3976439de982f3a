#include <cstring>
#include <string>
#include <utility>

#include <rankrun/objects.h>

#include "comm/arguments.h"
#include "comm/group.h"
#include "comm/process_group_access.h"
#include "comm/throw.h"

namespace rankrun {
namespace {

using comm::Group;
using comm::Unwrap;

// Tags of the library's own, beside those of programs, which are below 2^32.
constexpr uint64_t kObjectTags = uint64_t{1} << 32;

ConstTensor Bytes(const Object& object) { return {object.data(), DType::kUInt8, object.size()}; }
Tensor Bytes(Object& object) { return {object.data(), DType::kUInt8, object.size()}; }

// What cannot be sent must not be learned by the others as a hang: the size is
// told all the same, and refused by all who hear it.
void CheckSize(uint64_t bytes, int global_rank) {
  if (bytes <= kMaxObjectBytes) return;
  comm::Throw({ErrorCode::kInvalid, "the object of rank " + std::to_string(global_rank) + " has " +
                                        std::to_string(bytes) + " bytes: want at most " +
                                        std::to_string(kMaxObjectBytes)});
}

std::vector<uint64_t> SizesOf(std::span<const Object> objects) {
  std::vector<uint64_t> sizes;
  for (const Object& object : objects) sizes.push_back(object.size());
  return sizes;
}

Object Concatenated(std::span<const Object> objects) {
  Object all;
  for (const Object& object : objects) all.insert(all.end(), object.begin(), object.end());
  return all;
}

uint64_t Checked(std::span<const uint64_t> sizes, int global_rank) {
  uint64_t sum = 0;
  for (const uint64_t size : sizes) {
    CheckSize(size, global_rank);
    sum += size;
  }
  return sum;
}

void Distribute(const Object& all, std::span<const uint64_t> sizes, std::span<Object> objects) {
  auto next = all.begin();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    objects[i].assign(next, end);
    next = end;
  }
}

bool IsRoot(const ProcessGroup& group, Peer root) {
  return group.group_rank() == Unwrap(comm::GroupRankIn(group.global_ranks(), root));
}

int NameOf(const ProcessGroup& group, Peer peer) {
  const int rank = Unwrap(comm::GroupRankIn(group.global_ranks(), peer));
  return group.global_ranks()[static_cast<std::size_t>(rank)];
}

// The sizes of all ranks' objects, by group rank.
std::vector<uint64_t> GatherSizes(ProcessGroup& group, uint64_t own, Timeout timeout) {
  std::vector<uint64_t> sizes(static_cast<std::size_t>(group.world_size()));
  const std::vector<uint64_t> mine{own};
  group.AllGatherInto(sizes, mine, timeout);
  for (std::size_t r = 0; r < sizes.size(); ++r) CheckSize(sizes[r], group.global_ranks()[r]);
  return sizes;
}

std::vector<Object> Sized(const std::vector<uint64_t>& sizes) {
  std::vector<Object> objects;
  for (const uint64_t size : sizes) objects.emplace_back(size);
  return objects;
}

std::vector<Tensor> TensorsOf(std::vector<Object>& objects) {
  std::vector<Tensor> tensors;
  for (Object& object : objects) tensors.push_back(Bytes(object));
  return tensors;
}

}  // namespace

void BroadcastObjects(ProcessGroup& group, std::span<Object> objects, Peer root, Timeout timeout) {
  if (!group.is_member()) {
    group.Barrier(timeout);  // says that it does nothing
    return;
  }
  const bool is_root = IsRoot(group, root);
  std::vector<uint64_t> sizes = SizesOf(objects);
  group.Broadcast(sizes, root, timeout);
  const uint64_t bytes = Checked(sizes, NameOf(group, root));
  Object all = is_root ? Concatenated(objects) : Object(bytes);
  group.Broadcast(Bytes(all), root, timeout);
  if (!is_root) Distribute(all, sizes, objects);
}

std::vector<Object> AllGatherObject(ProcessGroup& group, const Object& object, Timeout timeout) {
  if (!group.is_member()) {
    group.Barrier(timeout);
    return {};
  }
  std::vector<Object> objects = Sized(GatherSizes(group, object.size(), timeout));
  group.AllGather(TensorsOf(objects), Bytes(object), timeout);
  return objects;
}

std::vector<Object> GatherObject(ProcessGroup& group, const Object& object, Peer root,
                                 Timeout timeout) {
  if (!group.is_member()) {
    group.Barrier(timeout);
    return {};
  }
  const std::vector<uint64_t> sizes = GatherSizes(group, object.size(), timeout);
  std::vector<Object> objects;
  if (IsRoot(group, root)) objects = Sized(sizes);
  group.Gather(TensorsOf(objects), Bytes(object), root, timeout);
  return objects;
}

Object ScatterObjects(ProcessGroup& group, std::span<const Object> objects, Peer root,
                      Timeout timeout) {
  if (!group.is_member()) {
    group.Barrier(timeout);
    return {};
  }
  std::vector<uint64_t> sizes = SizesOf(objects);
  std::vector<ConstTensor> inputs;
  if (IsRoot(group, root)) {
    for (const Object& object : objects) inputs.push_back(Bytes(object));
    // A wrong number of objects is refused by the scatter itself, for all ranks.
    sizes.resize(static_cast<std::size_t>(group.world_size()));
  } else {
    sizes.assign(static_cast<std::size_t>(group.world_size()), 0);
  }
  group.Broadcast(sizes, root, timeout);
  Checked(sizes, NameOf(group, root));
  Object own(sizes[static_cast<std::size_t>(group.group_rank())]);
  group.Scatter(Bytes(own), inputs, root, timeout);
  return own;
}

void SendObjects(ProcessGroup& group, std::span<const Object> objects, Peer destination, int tag,
                 Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  const uint64_t own_tag = kObjectTags + static_cast<uint32_t>(tag);
  const std::vector<uint64_t> sizes = SizesOf(objects);
  Unwrap(inner.Send(sizes, destination, own_tag, timeout));
  Checked(sizes, group.global_rank());
  Unwrap(inner.Send(Bytes(Concatenated(objects)), destination, own_tag, timeout));
}

int RecvObjects(ProcessGroup& group, std::span<Object> objects, Source source, int tag,
                Timeout timeout) {
  Group& inner = comm::GroupOf(group);
  const uint64_t own_tag = kObjectTags + static_cast<uint32_t>(tag);
  std::vector<uint64_t> sizes(objects.size());
  const int sender = Unwrap(inner.Recv(sizes, source, own_tag, timeout));
  if (sender < 0) return sender;
  Object all(Checked(sizes, sender));
  Unwrap(inner.Recv(Bytes(all), GlobalRank{sender}, own_tag, timeout));
  Distribute(all, sizes, objects);
  return sender;
}

}  // namespace rankrun
