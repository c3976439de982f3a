#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "base/net/socket_address.h"
#include "store/engine/request.h"

namespace rankrun::store {

// Returns the request and its key for messages: `SET of key "model"`. Pure.
std::string Describe(const Request& request);

// Latest reasons for which requests of clients were refused. Pure.
class Refusals {
 public:
  // Also replaces the reason for the same client.
  void Note(const SocketAddress& client, std::string why);
  // Returns the reason for a key; null if there is none.
  const std::string* Find(std::string_view key) const;
  void Clear() { latest_.clear(); }

 private:
  std::deque<std::pair<std::string, std::string>> latest_;  // key and reason
};

}  // namespace rankrun::store
