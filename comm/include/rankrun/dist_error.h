#pragma once

#include <stdexcept>
#include <string>

#include <rankrun/export.h>

namespace rankrun {

// Base class of all exceptions of this library. what() is one line: operation,
// group and rank, or the key, and the cause.
// The base class itself reports wrong use: a bad environment or argument, or a
// call before Init. Nothing was sent, and the group stays usable. Exception: on backends other
// than shm, wrong use of a collective breaks the group.
class RANKRUN_API DistError : public std::runtime_error {
 public:
  explicit DistError(const std::string& message);
  ~DistError() override;
};

// The backend failed; the process group is broken.
class RANKRUN_API DistBackendError : public DistError {
 public:
  using DistError::DistError;
  ~DistBackendError() override;
};

// A time-out of a process group has passed; the text names the missing ranks.
class RANKRUN_API DistTimeoutError : public DistBackendError {
 public:
  using DistBackendError::DistBackendError;
  ~DistTimeoutError() override;
};

// The ranks of a group called collectives that do not match; the text lists the
// call of each rank. The group is broken.
class RANKRUN_API DistMismatchError : public DistBackendError {
 public:
  using DistBackendError::DistBackendError;
  ~DistMismatchError() override;
};

// The store could not be reached, a connection to another rank was lost, or the
// agent reported the death of another worker. The text names the worker.
class RANKRUN_API DistNetworkError : public DistError {
 public:
  using DistError::DistError;
  ~DistNetworkError() override;
};

// The store answered with an error, or was lost after Init. Thrown by a Store
// (store.h): a key did not appear in time (the text names it), or the store
// cannot do the operation; a lost server is a DistNetworkError there.
class RANKRUN_API DistStoreError : public DistError {
 public:
  using DistError::DistError;
  ~DistStoreError() override;
};

}  // namespace rankrun
