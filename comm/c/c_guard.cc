#include "comm/c/c_guard.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <rankrun/distributed.h>
#include <rankrun/spawn.h>

namespace rankrun::comm {
namespace {

thread_local std::string last_error;
thread_local uint64_t failures = 0;

// Bad argument of a C function; the text does not contain the function's name
// yet.
class WrongArgument : public DistError {
 public:
  using DistError::DistError;
};

rankrun_status Failed(rankrun_status status, const std::exception& error) {
  last_error = error.what();
  return status;
}

size_t SizeIn(const void* options, size_t minimum) {
  uint32_t size = 0;
  std::memcpy(&size, &NotNull(static_cast<const char*>(options), "options"), sizeof size);
  if (size < minimum) {
    ThrowInvalid("options has the size " + std::to_string(size) + ": want the sizeof its type, " +
                 std::to_string(minimum) + " or more");
  }
  return size;
}

}  // namespace

void CheckNotInHook() {
  if (InterruptibleCall::IsInHook())
    ThrowInvalid("called in the interrupt hook: want the call after it has returned");
}

uint64_t FailuresOfThisThread() { return failures; }

// Also reports bad_alloc, because a wrong size may have caused it. Any
// exception that is no std::exception comes from the program and ends it.
rankrun_status CaughtStatus(const char* function) noexcept {
  failures += 1;
  try {
    throw;
  } catch (const WrongArgument& error) {
    last_error = std::string(function) + ": " + error.what();
    return RANKRUN_INVALID;
  } catch (const DistTimeoutError& error) {
    return Failed(RANKRUN_TIMEOUT, error);
  } catch (const DistMismatchError& error) {
    return Failed(RANKRUN_MISMATCH, error);
  } catch (const DistBackendError& error) {
    return Failed(RANKRUN_BACKEND, error);
  } catch (const DistNetworkError& error) {
    return Failed(RANKRUN_NETWORK, error);
  } catch (const DistStoreError& error) {
    return Failed(RANKRUN_STORE, error);
  } catch (const SpawnError& error) {
    return Failed(RANKRUN_PROCESS, error);
  } catch (const StatusError& error) {
    return Failed(error.status, error);
  } catch (const DistError& error) {
    return Failed(RANKRUN_INVALID, error);
  } catch (const std::exception& error) {
    return Failed(RANKRUN_INTERNAL, error);
  }
}

void ThrowInvalid(const std::string& message) { throw WrongArgument(message); }

const char* Text(const char* text, const char* name) { return &NotNull(text, name); }

std::string_view ViewOf(const void* data, size_t size, const char* name) {
  auto bytes = ListOf(static_cast<const char*>(data), size, name);
  return {bytes.data(), bytes.size()};
}

void ReadOptions(const void* given, void* options, size_t size, size_t minimum) {
  size_t given_size = SizeIn(given, minimum);
  const char* bytes = static_cast<const char*>(given);
  if (std::any_of(bytes + std::min(size, given_size), bytes + given_size,
                  [](char byte) { return byte != 0; })) {
    ThrowInvalid("options has " + std::to_string(given_size) + " bytes, and this library (ABI " +
                 std::to_string(RANKRUN_ABI_VERSION) + ") knows the first " + std::to_string(size) +
                 " only: want 0 in the others");
  }
  std::memcpy(options, given, std::min(size, given_size));
}

void WriteOptions(const void* defaults, size_t size, void* options, size_t minimum) {
  auto given_size = static_cast<uint32_t>(SizeIn(options, minimum));
  std::memset(options, 0, given_size);
  std::memcpy(options, defaults, std::min<size_t>(size, given_size));
  std::memcpy(options, &given_size, sizeof given_size);
}

// A handle points to the ProcessGroup itself.
ProcessGroup& GroupOf(const rankrun_group* group) {
  if (group == nullptr) return World();
  return *reinterpret_cast<ProcessGroup*>(const_cast<rankrun_group*>(group));
}

// Unknown dtype numbers are passed on to the group, which reports them to the
// other ranks.
Tensor TensorOf(const rankrun_tensor* tensor, const char* name) {
  const rankrun_tensor& from = NotNull(tensor, name);
  if (from.reserved != 0) ThrowInvalid(std::string(name) + ".reserved is not 0");
  Tensor result(from.data, static_cast<DType>(from.dtype), from.count);
  if (from.row != 0) result.row = from.row;
  if (from.device_type != 0) result.device.type = static_cast<DeviceType>(from.device_type);
  result.device.index = from.device_index;
  return result;
}

std::vector<Tensor> TensorsOf(const rankrun_tensor* tensors, size_t count, const char* name) {
  std::vector<Tensor> result;
  for (const rankrun_tensor& tensor : ListOf(tensors, count, name)) {
    result.push_back(TensorOf(&tensor, name));
  }
  return result;
}

std::vector<ConstTensor> InputsOf(const rankrun_tensor* tensors, size_t count, const char* name) {
  std::vector<Tensor> writable = TensorsOf(tensors, count, name);
  return {writable.begin(), writable.end()};
}

ReduceOp OpOf(const rankrun_reduce_op* op) {
  if (op == nullptr) return ReduceOp::kSum;
  ReduceOp result(static_cast<ReduceOp::Kind>(op->kind));
  if (op->kind == RANKRUN_PREMUL_SUM) result.factor = op->factor;
  return result;
}

Timeout TimeoutOf(int64_t timeout_ms) {
  if (timeout_ms == RANKRUN_DEFAULT_TIMEOUT) return std::nullopt;
  return std::chrono::milliseconds(timeout_ms);
}

Source SourceOf(int source) {
  if (source == RANKRUN_ANY_SOURCE) return std::nullopt;
  return GlobalRank{source};
}

CallOptions CallOf(int64_t timeout_ms, rankrun_work** work) {
  if (work != nullptr) *work = nullptr;
  return {.timeout = TimeoutOf(timeout_ms), .async = work != nullptr};
}

void Hand(Work work, rankrun_work** out) {
  if (out != nullptr) *out = new rankrun_work{std::move(work)};
}

rankrun_bytes* BlockOfParts(std::span<const std::string_view> parts) {
  if (parts.empty()) return nullptr;
  size_t size = parts.size() * sizeof(rankrun_bytes);
  for (std::string_view part : parts) size += part.size() + 1;
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  auto* array = static_cast<rankrun_bytes*>(block);
  char* data = reinterpret_cast<char*>(array + parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    array[i] = {data, parts[i].size()};
    data = std::copy(parts[i].begin(), parts[i].end(), data);
    *data++ = '\0';  // makes each text a C string
  }
  return array;
}

}  // namespace rankrun::comm

extern "C" {

uint32_t rankrun_abi_version(void) { return RANKRUN_ABI_VERSION; }

const char* rankrun_last_error(void) { return rankrun::comm::last_error.c_str(); }

void rankrun_bytes_release(rankrun_bytes* bytes) { std::free(bytes); }

}  // extern "C"
