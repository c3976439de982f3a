#pragma once

#include <functional>
#include <string>
#include <typeinfo>

#include <rankrun/store.h>

namespace rankrun {

// An exception of a public store.
struct Thrown {
  std::string kind;  // "none" if nothing was thrown
  std::string text = {};
};

inline Thrown ThrownBy(const std::function<void()>& body) {
  try {
    body();
  } catch (const DistStoreError& error) {
    return {"store", error.what()};
  } catch (const DistNetworkError& error) {
    return {"network", error.what()};
  } catch (const DistError& error) {
    return {typeid(error) == typeid(DistError) ? "use" : "another", error.what()};
  }
  return {"none"};
}

}  // namespace rankrun
