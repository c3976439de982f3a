#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "comm/core/device_backend.h"
#include "comm/nccl/connection.h"
#include "comm/nccl/cuda.h"

namespace rankrun::comm::nccl {

// Work that a GPU has, until the event `end`.
class NcclWork final : public DeviceWork {
 public:
  NcclWork(std::shared_ptr<Connection> connection, int device, Event end);
  ~NcclWork() override;

  Result<bool> Test() override;
  Result<void> WaitIn(void* stream) override;

 private:
  const std::shared_ptr<Connection> connection_;
  const int device_;
  std::optional<Event> end_;  // set until the destructor
};

}  // namespace rankrun::comm::nccl
