#include "comm/cpp/rpc/device_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/core/current_stream.h"
#include "comm/core/throw.h"
#include "comm/cpp/rpc/trailer.h"
#include "comm/rpc/device_maps.h"
#include "comm/world/plugin.h"

namespace rankrun::rpc {
namespace {

// Device on which an attachment arrives, as it travels.
struct Arrival {
  uint32_t attachment;
  int32_t type;
  int32_t index;
};
using Count = uint16_t;

const Result<const comm::DeviceMemory*>& MemoryOfGpus() {
  static const auto& memory = *new Result(comm::LoadDeviceMemory(comm::PluginFolders()));
  return memory;
}

const comm::DeviceMemory& Memory() {
  const auto& memory = MemoryOfGpus();
  if (!memory) comm::Throw(memory.error());
  return **memory;
}

bool IsGpu(const Device& device) { return device.type == DeviceType::kCuda; }

std::optional<Device> TargetIn(const DevicePairs& pairs, const Device& source) {
  auto found = std::find_if(pairs.begin(), pairs.end(),
                            [&](const auto& pair) { return pair.first == source; });
  return found != pairs.end() ? std::optional(found->second) : std::nullopt;
}

[[noreturn]] void ThrowNoWay(const Device& device, const Route& route) {
  const std::string& name = route.receiver.name;
  std::string text = "an attachment is on " + comm::rpc::InWords(device) +
                     ", from where no device map leads to worker " + name;
  ThrowInvalid(text + (route.is_reply ? ": want SetDeviceMap in the options of the caller"
                                      : ": want SetDeviceMap(\"" + name + "\", ...)"));
}

Attachment OnHost(const Attachment& attachment) {
  std::shared_ptr<std::byte[]> copy =
      std::make_shared_for_overwrite<std::byte[]>(attachment.bytes.size());
  std::byte* bytes = copy.get();
  comm::Unwrap(
      Memory().read(attachment.device.index, attachment.bytes, bytes, comm::CurrentStream()));
  return {std::move(copy), {bytes, attachment.bytes.size()}};
}

Attachment OnGpu(const Attachment& attachment, const Device& device) {
  size_t size = attachment.bytes.size();
  auto memory = comm::Unwrap(Memory().allocate(device.index, size));
  auto* bytes = static_cast<std::byte*>(memory.get());
  comm::Unwrap(Memory().write(device.index, attachment.bytes, bytes, comm::CurrentStream()));
  return {std::move(memory), {bytes, size}, device};
}

// Prepares an attachment for another worker. Returns the device on which it arrives.
Device Prepare(Attachment& attachment, const DevicePairs& pairs, const Route& route) {
  auto target = TargetIn(pairs, attachment.device);
  if (!target && IsGpu(attachment.device)) ThrowNoWay(attachment.device, route);
  if (IsGpu(attachment.device)) attachment = OnHost(attachment);
  return target.value_or(Device{});
}

}  // namespace

int GpuCount() {
  const auto& memory = MemoryOfGpus();
  if (!memory) return 0;
  auto count = (*memory)->count();
  return count ? *count : 0;
}

void SendDevices(Running& running, Payload& payload, const Route& route) {
  Count arrivals = 0;
  if (!payload.attachments.empty()) {
    bool is_here = route.receiver.id == running.self;
    DevicePairs pairs;
    if (!is_here) {
      pairs = route.is_reply ? running.agent->GetReverseDeviceMap(route.receiver)
                             : running.agent->GetDeviceMap(route.receiver);
    }
    for (uint32_t i = 0; i < payload.attachments.size(); ++i) {
      Attachment& each = payload.attachments[i];
      Device device = is_here ? each.device : Prepare(each, pairs, route);
      if (!IsGpu(device)) continue;
      Append(payload.bytes, Arrival{i, static_cast<int32_t>(device.type), device.index});
      arrivals += 1;
    }
  }
  Append(payload.bytes, arrivals);
}

void ReceiveDevices(const Running& running, Payload& payload, int sender) {
  for (auto left = TakeLast<Count>(payload.bytes); left > 0; --left) {
    auto arrival = TakeLast<Arrival>(payload.bytes);
    Device device{.type = static_cast<DeviceType>(arrival.type), .index = arrival.index};
    if (arrival.attachment >= payload.attachments.size() || !IsGpu(device)) {
      ThrowInvalid("a payload names a device without an attachment");
    }
    Attachment& attachment = payload.attachments[arrival.attachment];
    if (sender == running.self) {
      attachment.device = device;
      continue;
    }
    if (!running.agent->MayArriveOn(device)) {
      ThrowInvalid("a payload names " + comm::rpc::InWords(device) +
                   ", which this worker does not use");
    }
    attachment = OnGpu(attachment, device);
  }
}

}  // namespace rankrun::rpc
