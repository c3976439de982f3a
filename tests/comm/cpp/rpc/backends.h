#pragma once

#include <gtest/gtest.h>

#include <string>

#include <rankrun/rpc.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {

// Tests of static groups, which each backend must pass.
class RpcBackendsTest : public testing::TestWithParam<const char*> {
 protected:
  // Starts RPC of this worker with the test's backend.
  static void Start(const std::string& name, rpc::Options options = {}) {
    options.backend = GetParam();
    rpc::Init(name, options);
  }
};

#define RANKRUN_WITH_EACH_RPC_BACKEND(suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, testing::Values("TENSORPIPE", "PROCESS_GROUP"), \
                           NameOfBackend)

}  // namespace rankrun::comm
