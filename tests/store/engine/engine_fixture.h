#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/engine/engine.h"

namespace rankrun::store {

// An engine, with helpers that send one request each.
struct EngineTest : testing::Test {
  std::vector<Outgoing> Ask(ConnectionId from, Request request) {
    std::vector<Outgoing> replies;
    auto applied = engine.Apply(from, std::move(request), replies);
    EXPECT_TRUE(applied) << applied.error().message;
    return replies;
  }
  Error Refused(ConnectionId from, Request request) {
    std::vector<Outgoing> replies;
    auto applied = engine.Apply(from, std::move(request), replies);
    EXPECT_TRUE(replies.empty());
    EXPECT_FALSE(applied);
    return applied ? Error{} : applied.error();
  }
  std::string Value(const std::string& key) {
    return std::get<ValueReply>(Ask(99, GetRequest{key}).at(0).reply).value;
  }
  bool Exists(const std::string& key) {
    return std::get<CheckReply>(Ask(99, CheckRequest{{key}}).at(0).reply) == CheckReply::kReady;
  }
  Engine engine{size_t{1} << 30};
};

inline Outgoing Number(ConnectionId to, int64_t number) { return {to, NumberReply{number}}; }
inline Outgoing Text(ConnectionId to, std::string value) {
  return {to, ValueReply{std::move(value)}};
}
inline Outgoing Released(ConnectionId to) { return {to, WaitReply::kStopWaiting}; }
inline Outgoing Canceled(ConnectionId to) { return {to, WaitReply::kWaitCanceled}; }

}  // namespace rankrun::store
