#pragma once

#include <any>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/tensor.h>

// Data that calls of rpc.h carry.
namespace rankrun::rpc {

struct WorkerInfo {
  std::string name;
  int id = -1;
};

// Bytes that several owners share and none changes. In another process they begin at a
// multiple of 64 bytes; a call of a worker to itself passes them on as they are. Those on a
// GPU are read in the order of the thread's stream (SetStream), and travel to the device that
// TensorPipeRpcBackendOptions::SetDeviceMap names.
struct Attachment {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
  Device device = {};  // with the bytes
};

struct Payload;

// Value in the memory of its owner.
struct OwnedValue {
  std::any value;
  // Returns the value for another worker; null: it stays with its owner.
  std::function<Payload(const std::any& value)> encode = {};
};

namespace internal {
class Hold;
}

// Reference to a value that a worker owns. Copies refer to the same value, and payloads pass
// it on to other workers. The owner frees the value once nobody refers to it, or the others
// have ended.
// Thread: any.
// Source: torch.distributed.rpc.RRef.
class RANKRUN_API Reference {
 public:
  Reference() = default;  // to nothing; all functions but the next two throw DistError
  explicit Reference(std::shared_ptr<internal::Hold> hold) : hold_(std::move(hold)) {}
  explicit operator bool() const { return hold_ != nullptr; }
  const std::shared_ptr<internal::Hold>& hold() const { return hold_; }  // of the library

  WorkerInfo owner() const;
  bool is_owner() const;
  bool confirmed_by_owner() const;  // the owner has the value, or the error of its method

  // Returns the value from its owner. `timeout`: as of RpcSync. Errors: those of the method
  // that makes it, and of RpcSync; DistError for a value that stays with its owner.
  Payload ToHere(Timeout timeout = {}) const;
  // Waits for the value of this worker. Errors: as ToHere; DistError on other workers.
  const std::any& LocalValue(Timeout timeout = {}) const;

 private:
  std::shared_ptr<internal::Hold> hold_;
};

// Arguments or result of a call.
struct Payload {
  std::string bytes = {};                    // such as CBOR; at most 32 MiB
  std::vector<Attachment> attachments = {};  // large data; at most 65535, sent without a copy
  std::vector<Reference> references = {};    // at most 65535
};

// The method of a worker threw an exception. The text names worker and method.
class RANKRUN_API RemoteError : public DistError {
 public:
  using DistError::DistError;
  ~RemoteError() override;
};

// The worker has registered no method of this name, or not yet. The text has those that it has.
class RANKRUN_API UnknownMethodError : public DistError {
 public:
  using DistError::DistError;
  ~UnknownMethodError() override;
};

}  // namespace rankrun::rpc
