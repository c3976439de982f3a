#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rankrun/c/group.h>
#include <rankrun/c/types.h>
#include <rankrun/process_group.h>
#include <rankrun/store_base.h>

#include "base/interruptible_call.h"
#include "base/private_api.h"
#include "comm/stores/store_handle.h"

// Conversions between the C ABI and the public C++ functions: exceptions to
// status codes, and arguments of C to arguments of C++.

struct rankrun_work {
  rankrun::Work work;
};

namespace rankrun::comm {

// Failure with a status of its own.
struct StatusError : std::runtime_error {
  StatusError(rankrun_status its_status, const std::string& text)
      : std::runtime_error(text), status(its_status) {}

  rankrun_status status;
};

// Returns the status of the exception that is being handled, and stores its
// text for rankrun_last_error().
RANKRUN_PRIVATE_API rankrun_status CaughtStatus(const char* function) noexcept;

// Throws a DistError in the hook of c/interrupt.h, which may call no function.
RANKRUN_PRIVATE_API void CheckNotInHook();

// Returns how often a C function has set rankrun_last_error() in this thread.
uint64_t FailuresOfThisThread();

// Runs `body` and converts exceptions to a status. `function` is the calling
// function.
template <typename Body>
rankrun_status Guarded(Body body, const char* function = __builtin_FUNCTION()) noexcept {
  const InterruptibleCall call;
  try {
    CheckNotInHook();
    body();
    return RANKRUN_OK;
  } catch (...) {
    const rankrun_status status = CaughtStatus(function);
    return InterruptibleCall::WasInterrupted() ? RANKRUN_INTERRUPTED : status;
  }
}

// Runs `body` and returns its value, or `otherwise` after an exception.
template <typename T, typename Body>
T GuardedOr(T otherwise, Body body, const char* function = __builtin_FUNCTION()) noexcept {
  T value = otherwise;
  return Guarded([&] { value = body(); }, function) == RANKRUN_OK ? value : otherwise;
}

// The following functions throw a DistError with the argument's `name`; Guarded
// adds the function's name.
[[noreturn]] RANKRUN_PRIVATE_API void ThrowInvalid(const std::string& message);
template <typename T>
T& NotNull(T* pointer, const char* name) {
  if (pointer == nullptr) ThrowInvalid(std::string(name) + " is NULL");
  return *pointer;
}
// Sets the place for a result to NULL. Must be a separate statement, because an
// assignment evaluates its right side first, which may throw.
template <typename T>
void Clear(T** place, const char* name) {
  NotNull(place, name) = nullptr;
}
RANKRUN_PRIVATE_API const char* Text(const char* text, const char* name);
RANKRUN_PRIVATE_API std::string_view ViewOf(const void* data, size_t size, const char* name);
template <typename T>
std::span<const T> ListOf(const T* items, size_t count, const char* name) {
  if (items == nullptr && count > 0) ThrowInvalid(std::string(name) + " is NULL");
  return {items, count};
}

// Size of the first version of an option struct, which later ones extend.
template <typename Options>
inline constexpr size_t kFirstSize = sizeof(Options);
template <>
inline constexpr size_t kFirstSize<rankrun_init_options> = offsetof(rankrun_init_options,
                                                                    device_index);
template <>
inline constexpr size_t kFirstSize<rankrun_group_options> = offsetof(rankrun_group_options, nccl);
template <>
inline constexpr size_t kFirstSize<rankrun_subgroup_options> = offsetof(rankrun_subgroup_options,
                                                                        nccl);

// Copies `given` over the defaults in `options`. Fields that an older program
// does not know keep their defaults; fields that this library does not know
// must be 0. `minimum` is the size of the first version of the struct.
RANKRUN_PRIVATE_API void ReadOptions(const void* given, void* options, size_t size, size_t minimum);
template <typename Options>
Options OptionsOf(const Options* given, Options defaults) {
  if (given != nullptr) ReadOptions(given, &defaults, sizeof defaults, kFirstSize<Options>);
  return defaults;
}
// Writes the defaults, as far as the program's version of the struct has room.
RANKRUN_PRIVATE_API void WriteOptions(const void* defaults, size_t size, void* options,
                                      size_t minimum);
template <typename Options>
void WriteOptions(const Options& defaults, Options* options) {
  WriteOptions(&defaults, sizeof defaults, options, kFirstSize<Options>);
}

ProcessGroup& GroupOf(const rankrun_group* group);
Tensor TensorOf(const rankrun_tensor* tensor, const char* name);
std::vector<Tensor> TensorsOf(const rankrun_tensor* tensors, size_t count, const char* name);
std::vector<ConstTensor> InputsOf(const rankrun_tensor* tensors, size_t count, const char* name);
ReduceOp OpOf(const rankrun_reduce_op* op);
RANKRUN_PRIVATE_API Timeout TimeoutOf(int64_t timeout_ms);
Source SourceOf(int source);
// Returns options that are asynchronous if `work` is not NULL; sets *work to
// NULL.
CallOptions CallOf(int64_t timeout_ms, rankrun_work** work);
void Hand(Work work, rankrun_work** out);

// Returns an array and its parts in one block of memory; null if there are no
// parts.
RANKRUN_PRIVATE_API rankrun_bytes* BlockOfParts(std::span<const std::string_view> parts);
template <typename Part>
rankrun_bytes* CopyOf(const std::vector<Part>& parts) {
  std::vector<std::string_view> views;
  views.reserve(parts.size());
  for (const Part& part : parts) {
    views.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return BlockOfParts(views);
}
inline rankrun_bytes* CopyOf(std::string_view text) { return BlockOfParts({&text, 1}); }

}  // namespace rankrun::comm
