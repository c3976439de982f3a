#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rankrun/c_types.h>
#include <rankrun/process_group.h>
#include <rankrun/store_base.h>

// Where C meets the public C++ functions: the one place where exceptions become
// codes, and what C passes becomes what C++ takes.

struct rankrun_work {
  rankrun::Work work;
};

// Shared with the prefix stores above it and with Init.
struct rankrun_store {
  std::shared_ptr<rankrun::Store> store;
};

namespace rankrun::comm {

// Of the exception that is being handled; its text is rankrun_last_error() from
// now on.
rankrun_status CaughtStatus(const char* function) noexcept;

// Runs `body`; lets no exception out. `function` is the one that calls this.
template <typename Body>
rankrun_status Guarded(Body body, const char* function = __builtin_FUNCTION()) noexcept {
  try {
    body();
    return RANKRUN_OK;
  } catch (...) {
    return CaughtStatus(function);
  }
}

// The same for what returns a value: `otherwise` after an error.
template <typename T, typename Body>
T GuardedOr(T otherwise, Body body, const char* function = __builtin_FUNCTION()) noexcept {
  T value = otherwise;
  return Guarded([&] { value = body(); }, function) == RANKRUN_OK ? value : otherwise;
}

// All of these throw DistError that calls the argument `name`; Guarded puts the
// function before that.
[[noreturn]] void ThrowInvalid(const std::string& message);
template <typename T>
T& NotNull(T* pointer, const char* name) {
  if (pointer == nullptr) ThrowInvalid(std::string(name) + " is NULL");
  return *pointer;
}
// Sets the place for a result to NULL. A statement of its own: what is assigned
// is evaluated first.
template <typename T>
void Clear(T** place, const char* name) {
  NotNull(place, name) = nullptr;
}
const char* Text(const char* text, const char* name);
std::string_view ViewOf(const void* data, std::size_t size, const char* name);
template <typename T>
std::span<const T> ListOf(const T* items, std::size_t count, const char* name) {
  if (items == nullptr && count > 0) ThrowInvalid(std::string(name) + " is NULL");
  return {items, count};
}

// `given` with what a program compiled against an older header does not know
// left as in `defaults`. `minimum`: the size that the struct had at first. What
// this library does not know must be 0.
void ReadOptions(const void* given, void* options, std::size_t size, std::size_t minimum);
template <typename Options>
Options OptionsOf(const Options* given, Options defaults, std::size_t minimum = sizeof(Options)) {
  if (given != nullptr) ReadOptions(given, &defaults, sizeof defaults, minimum);
  return defaults;
}
// Fills as much as the program has room for.
void WriteOptions(const void* defaults, std::size_t size, void* options, std::size_t minimum);

ProcessGroup& GroupOf(const rankrun_group* group);
Tensor TensorOf(const rankrun_tensor* tensor, const char* name);
std::vector<Tensor> TensorsOf(const rankrun_tensor* tensors, std::size_t count, const char* name);
std::vector<ConstTensor> InputsOf(const rankrun_tensor* tensors, std::size_t count,
                                  const char* name);
ReduceOp OpOf(const rankrun_reduce_op* op);
Timeout TimeoutOf(int64_t timeout_ms);
Source SourceOf(int source);
// Async if there is a place for its handle, which is set to NULL.
CallOptions CallOf(int64_t timeout_ms, rankrun_work** work);
void Hand(Work work, rankrun_work** out);

// One array in one block of memory, with all the parts; null if there are none.
rankrun_bytes* BlockOfParts(std::span<const std::string_view> parts);
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
