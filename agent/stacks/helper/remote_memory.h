#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rankrun::agent {

// Memory of another process. Tests replace it by bytes of their own.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  // Copies as many bytes from `address` on as are readable, up to the size of `bytes`.
  // Returns their number. Bytes are missing only at the end.
  virtual size_t ReadSome(uint64_t address, std::span<char> bytes) const = 0;

  bool Read(uint64_t address, std::span<char> bytes) const {
    return ReadSome(address, bytes) == bytes.size();
  }

  // Returns a number or pointer; nothing if it is not readable.
  template <typename Value>
  std::optional<Value> Get(uint64_t address) const {
    char bytes[sizeof(Value)];
    if (!Read(address, bytes)) return std::nullopt;
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

// Memory of a living process, read without stopping it.
class ProcessMemory : public RemoteMemory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  size_t ReadSome(uint64_t address, std::span<char> bytes) const override;

 private:
  const pid_t pid_;
};

}  // namespace rankrun::agent
