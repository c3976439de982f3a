#pragma once

#include <memory>

#include "base/result.h"
#include "comm/mpi/channel.h"

namespace rankrun::comm::mpi {

// Lets a thread of the process poll the channel, until both ends are closed and all of its
// data is sent. Error: kExhausted, the system has no thread left.
Result<void> AddToProgress(std::shared_ptr<Channel> channel);

// Closes all channels, waits up to 5 s for their other ends, and ends the thread.
void FinishProgress();

}  // namespace rankrun::comm::mpi
