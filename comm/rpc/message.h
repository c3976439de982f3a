#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Messages between workers of RPC, and their form on a connection:
//
//   FrameHeader, then `bytes` bytes of body:
//     the size of each blob (8 bytes), the head, each blob at a multiple of kBlobAlignment
//
// Integers are in the byte order of the workers, which must be equal.
namespace rankrun::comm::rpc {

// Bytes that several owners share and none changes.
struct Blob {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

struct Message {
  std::string head;
  std::vector<Blob> blobs = {};
};

enum class FrameKind : uint16_t {
  kRequest = 1,  // head: the method and its arguments
  kReply,        // head: its value
  kFailure,      // head: why there is none
  kPing,         // is answered by an empty kReply at once
  kGoodbye,      // the sender ends
};

struct FrameHeader {
  uint64_t id;          // of the call, unique for the connection
  uint64_t bytes;       // of the body
  uint32_t head_bytes;  // of the body's head
  uint16_t blobs;
  FrameKind kind;
};
static_assert(sizeof(FrameHeader) == 24 && std::has_unique_object_representations_v<FrameHeader>);

constexpr size_t kBlobAlignment = 64;
constexpr size_t kMaxHeadBytes = size_t{64} << 20;
constexpr size_t kMaxBodyBytes = size_t{1} << 40;

constexpr size_t AlignedUp(size_t bytes) {
  return (bytes + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

// Returns the header of a message. It fits: at most 65535 blobs, kMaxHeadBytes.
FrameHeader HeaderOf(FrameKind kind, uint64_t id, const Message& message);

// Returns whether the numbers fit each other and the limits, before the body is there.
bool IsPlausible(const FrameHeader& header);

// Body of a frame. Borrows the bytes.
struct Body {
  std::string_view head;
  std::vector<std::span<const std::byte>> blobs;
};
// Returns false for sizes that do not add up to the header's. Pure.
bool Parse(const FrameHeader& header, std::span<const std::byte> bytes, Body& body);

}  // namespace rankrun::comm::rpc
