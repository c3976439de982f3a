#include "comm/rpc/message.h"

#include <cstring>

namespace rankrun::comm::rpc {
namespace {

size_t HeadAt(size_t blobs) { return blobs * sizeof(uint64_t); }

}  // namespace

FrameHeader HeaderOf(FrameKind kind, uint64_t id, const Message& message) {
  size_t bytes = HeadAt(message.blobs.size()) + message.head.size();
  for (const Blob& blob : message.blobs) bytes = AlignedUp(bytes) + blob.bytes.size();
  return {.id = id,
          .bytes = bytes,
          .head_bytes = static_cast<uint32_t>(message.head.size()),
          .blobs = static_cast<uint16_t>(message.blobs.size()),
          .kind = kind};
}

bool IsPlausible(const FrameHeader& header) {
  bool is_known = header.kind >= FrameKind::kRequest && header.kind <= FrameKind::kGoodbye;
  size_t least = HeadAt(header.blobs) + header.head_bytes;
  return is_known && header.head_bytes <= kMaxHeadBytes && header.bytes <= kMaxBodyBytes &&
         header.bytes >= least && (header.blobs > 0 || header.bytes == least);
}

bool Parse(const FrameHeader& header, std::span<const std::byte> bytes, Body& body) {
  size_t at = HeadAt(header.blobs);
  body.head = {reinterpret_cast<const char*>(bytes.data()) + at, header.head_bytes};
  at += header.head_bytes;
  body.blobs.clear();
  for (size_t i = 0; i < header.blobs; ++i) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + i * sizeof size, sizeof size);
    at = AlignedUp(at);
    if (at > bytes.size() || size > bytes.size() - at) return false;
    body.blobs.push_back(bytes.subspan(at, size));
    at += size;
  }
  return at == bytes.size();
}

}  // namespace rankrun::comm::rpc
