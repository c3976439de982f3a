#pragma once

#include <stdexcept>
#include <string>

#include <rankrun/export.h>

namespace rankrun {

// What the public functions of this library throw. what() is one line that
// says which operation of which group on which rank, or of which key, failed
// and why.
// The base class itself is thrown for wrong use: a bad environment or
// argument, a call before Init. Nothing was sent then, and the group is as
// usable as it was, but for a collective on Gloo: that breaks the group.
class RANKRUN_API DistError : public std::runtime_error {
 public:
  explicit DistError(const std::string& message);
  ~DistError() override;
};

// The backend could not do it; the process group is broken.
class RANKRUN_API DistBackendError : public DistError {
 public:
  using DistError::DistError;
  ~DistBackendError() override;
};

// A deadline of a process group passed; the text names the ranks that were waited for.
class RANKRUN_API DistTimeoutError : public DistBackendError {
 public:
  using DistBackendError::DistBackendError;
  ~DistTimeoutError() override;
};

// The ranks of a group called collectives that do not fit together; the text says
// what each of them called. The group is broken.
class RANKRUN_API DistMismatchError : public DistBackendError {
 public:
  using DistBackendError::DistBackendError;
  ~DistMismatchError() override;
};

// The store could not be reached, a connection to another rank was lost, or
// rankrun says that another worker has died: the text names it.
class RANKRUN_API DistNetworkError : public DistError {
 public:
  using DistError::DistError;
  ~DistNetworkError() override;
};

// The store answered with an error, or was lost after Init. From a Store
// (store.h): a key did not come in time, the text names it; or the store
// cannot do it. A lost server is a DistNetworkError there.
class RANKRUN_API DistStoreError : public DistError {
 public:
  using DistError::DistError;
  ~DistStoreError() override;
};

}  // namespace rankrun
