#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace rankrun::agent {

// NVIDIA's management library, which comes with the driver: counts GPUs without
// CUDA. Loaded by Open, unloaded with the object. Thread: one at a time.
// Source: NVML API reference, nvmlInit_v2 and the functions named below.
class Nvml {
 public:
  // Errors: kNotFound without the library or without a driver, kSystem if they
  // do not work (for example a driver of another version).
  static Result<std::unique_ptr<Nvml>> Open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Errors: kSystem.
  Result<int> Count() const;

  // Returns the PCI address of a GPU, given by index or UUID ("GPU-...",
  // "MIG-..."), as in /sys: "0000:65:00.0". Errors: kNotFound, kSystem.
  Result<std::string> PciAddress(const std::string& gpu) const;

 private:
  explicit Nvml(void* library) : library_(library) {}

  template <typename Function>
  Function* Find(const char* symbol) const;
  Error Failure(const std::string& what, int status) const;

  void* library_;
  bool ready_ = false;
};

}  // namespace rankrun::agent
