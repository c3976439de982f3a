#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/process/signals_blocked.h"
#include "base/result.h"

namespace rankrun {

// Starts a thread that runs `run` and gets no signals. Error: kExhausted,
// "start a thread: <cause>".
template <typename Run>
Result<std::thread> StartThread(Run run) {
  const SignalsBlocked in_the_thread;
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return SystemError("start a thread", error.code().value());
  }
}

}  // namespace rankrun
