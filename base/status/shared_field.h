#pragma once

#include <atomic>

// Access to fields in memory that another process reads or writes meanwhile.
namespace rankrun::shared {

template <typename T>
T Get(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_acquire);
}

// Stores a value after all earlier stores.
template <typename T>
void Set(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_release);
}

}  // namespace rankrun::shared
