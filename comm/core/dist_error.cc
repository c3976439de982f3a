#include <rankrun/dist_error.h>

namespace rankrun {

// Out of line, so that vtables and type information are in librankrun.so only.
// A `catch` in the program then matches the type that was thrown here.
DistError::DistError(const std::string& message) : std::runtime_error(message) {}
DistError::~DistError() = default;
DistBackendError::~DistBackendError() = default;
DistTimeoutError::~DistTimeoutError() = default;
DistMismatchError::~DistMismatchError() = default;
DistNetworkError::~DistNetworkError() = default;
DistStoreError::~DistStoreError() = default;

}  // namespace rankrun
