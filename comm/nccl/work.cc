#include "comm/nccl/work.h"

#include <utility>

namespace rankrun::comm::nccl {

NcclWork::NcclWork(std::shared_ptr<Connection> connection, int device, Event end)
    : connection_(std::move(connection)), device_(device), end_(std::move(end)) {}

NcclWork::~NcclWork() {
  CurrentGpu current(device_);
  end_.reset();
}

Result<bool> NcclWork::Test() {
  CurrentGpu current(device_);
  if (!current.entered()) return current.entered().error();
  auto done = end_->Test();
  // After the event, which an abort reaches, too.
  if (connection_->aborted().load()) return Connection::Broken();
  if (!done || *done) return done;
  if (auto communicator = connection_->Get()) {
    if (auto ok = communicator->Failure(); !ok) return ok.error();
  }
  return false;
}

Result<void> NcclWork::WaitIn(void* stream) {
  CurrentGpu current(device_);  // for the default stream
  if (!current.entered()) return current.entered();
  return end_->WaitIn(static_cast<cudaStream_t>(stream));
}

}  // namespace rankrun::comm::nccl
