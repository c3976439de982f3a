#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "store/clients/tcp_store.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {

// A server and a TcpStore that is connected to it.
struct TcpStoreFixture : testing::Test {
  TcpStoreFixture() {
    auto connected = TcpStore::Connect("127.0.0.1", server.port(),
                                       {.connect_timeout = std::chrono::seconds(20)});
    EXPECT_TRUE(connected) << connected.error().message;
    store = std::move(*connected);
  }
  ServerThread server;
  std::unique_ptr<TcpStore> store;
};

}  // namespace rankrun::store
