#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/dtype.h>
#include <rankrun/rpc/payload.h>

// Types of values.h beside those of the program.
namespace rankrun::rpc {

// Tensor in row-major order. Its memory is shared, and begins at a multiple of 64 bytes after
// it has travelled.
struct TensorValue {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape = {};
  Attachment data = {};
};

// Reference to a T.
template <typename T>
class RRef {
 public:
  RRef() = default;
  explicit RRef(Reference reference) : reference_(std::move(reference)) {}

  const Reference& reference() const { return reference_; }
  WorkerInfo owner() const { return reference_.owner(); }
  bool is_owner() const { return reference_.is_owner(); }
  // On the owner: the value itself.
  const T& LocalValue(Timeout timeout = {}) const {
    return *std::any_cast<const std::shared_ptr<T>&>(reference_.LocalValue(timeout));
  }
  std::shared_ptr<T> Share(Timeout timeout = {}) const {
    return std::any_cast<std::shared_ptr<T>>(reference_.LocalValue(timeout));
  }
  T ToHere(Timeout timeout = {}) const;

 private:
  Reference reference_;
};

}  // namespace rankrun::rpc
