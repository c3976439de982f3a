#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/core/backend.h"
#include "comm/core/operation.h"

namespace rankrun::comm::stream {

// Purpose of a frame. kData travels on the data streams, all others on the
// control stream.
enum class FrameKind : uint16_t {
  kData = 1,     // block of a collective; describes the sender's call
  kMessage,      // short message with its data
  kOffer,        // long message; the data follows once the receiver accepts
  kAccept,       // answer to an offer
  kRefuse,       // answer to an offer of another size or type
  kMessageData,  // piece of an accepted message
  kCall,         // the sender's call, to be compared
  kProbe,        // the sender has waited too long: asks whether the receiver still runs
  kAnswer,       // answer to a probe: the sender's last call
  kContinue,     // the sender of a probe continues; otherwise its farewell follows
  kFarewell,     // the sender closes its connections; the text follows
};

// Header of each frame, in the byte order of the ranks, which must be equal.
// `bytes` of data follow.
struct FrameHeader {
  FrameKind kind;
  uint8_t operation_kind = 0;  // of the call
  uint8_t dtype = 0;           // of the call or message
  uint8_t op = 0;              // of the call
  uint8_t code = 0;            // kFarewell: FarewellCode
  uint8_t device = 0;          // of the call
  uint8_t form = 0;            // of the call: its part_of, and kByBackend
  uint64_t bytes = 0;          // of data in this frame
  uint64_t number = 0;         // of the call or message; kFarewell: of the first call that fails
  uint64_t fingerprint = 0;    // of the call
  uint64_t count = 0;          // of the call; kOffer, kRefuse: bytes of the whole message
  int32_t root = 0;            // of the call
  int32_t global_root = 0;
  uint64_t layout = 0;  // of the call
  uint64_t tag = 0;     // of a message
};
static_assert(sizeof(FrameHeader) == 64 && std::has_unique_object_representations_v<FrameHeader>);

constexpr uint8_t kByBackend = 0x80;
inline uint8_t FormOf(const Operation& operation) {
  return static_cast<uint8_t>(static_cast<uint8_t>(operation.part_of) |
                              (operation.by_backend ? kByBackend : 0));
}

// Returns the header of a frame about this call.
inline FrameHeader HeaderOf(FrameKind kind, const Operation& operation, uint64_t fingerprint) {
  return {.kind = kind,
          .operation_kind = static_cast<uint8_t>(operation.kind),
          .dtype = static_cast<uint8_t>(operation.dtype),
          .op = static_cast<uint8_t>(operation.op),
          .device = static_cast<uint8_t>(operation.device),
          .form = FormOf(operation),
          .number = operation.number,
          .fingerprint = fingerprint,
          .count = operation.count,
          .root = operation.root,
          .global_root = operation.global_root,
          .layout = operation.layout};
}

// Returns the call that the header describes.
inline Operation OperationIn(const FrameHeader& header) {
  return {.kind = static_cast<Operation::Kind>(header.operation_kind),
          .dtype = static_cast<DType>(header.dtype),
          .op = static_cast<ReduceOp::Kind>(header.op),
          .device = static_cast<DeviceType>(header.device),
          .by_backend = (header.form & kByBackend) != 0,
          .part_of = static_cast<ProgramCall>(header.form & ~kByBackend),
          .root = header.root,
          .global_root = header.global_root,
          .count = header.count,
          .number = header.number,
          .layout = header.layout};
}

}  // namespace rankrun::comm::stream
