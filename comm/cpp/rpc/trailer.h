#pragma once

#include <cstring>
#include <string>
#include <type_traits>

#include "comm/cpp/rpc/running.h"

// Numbers behind the bytes of a payload, in the byte order of the workers.
namespace rankrun::rpc {

template <typename T>
void Append(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a value from the end of the bytes. Throws DistError if they are too few.
template <typename T>
T TakeLast(std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof(T)) ThrowInvalid("the last bytes of a payload are missing");
  T value;
  std::memcpy(&value, bytes.data() + bytes.size() - sizeof value, sizeof value);
  bytes.resize(bytes.size() - sizeof value);
  return value;
}

}  // namespace rankrun::rpc
