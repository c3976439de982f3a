#include "store/server/refusals.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "store/engine/quoted_key.h"

namespace rankrun::store {
namespace {

constexpr size_t kMaxReasons = 64;

template <typename R>
std::vector<std::string_view> KeysOf(const R& request) {
  if constexpr (requires { request.key; }) {
    return {request.key};
  } else if constexpr (requires { request.keys; }) {
    return {request.keys.begin(), request.keys.end()};
  } else if constexpr (requires { request.entries; }) {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : request.entries) keys.push_back(key);
    return keys;
  } else {
    return {};
  }
}

}  // namespace

std::string Describe(const Request& request) {
  std::string text(std::visit([](const auto& one_kind) { return one_kind.kName; }, request));
  const auto keys = std::visit([](const auto& one_kind) { return KeysOf(one_kind); }, request);
  if (keys.empty()) return text;
  text += " of key " + QuotedKey(keys.front());
  return keys.size() == 1 ? text : text + " and " + std::to_string(keys.size() - 1) + " more";
}

void Refusals::Note(const SocketAddress& client, std::string why) {
  const std::string key = std::string(kRefusalKeys) + client.ToString();
  std::erase_if(latest_, [&](const auto& entry) { return entry.first == key; });
  if (latest_.size() == kMaxReasons) latest_.pop_front();
  latest_.emplace_back(key, std::move(why));
}

const std::string* Refusals::Find(std::string_view key) const {
  auto found = std::ranges::find(latest_, key, &std::pair<std::string, std::string>::first);
  return found == latest_.end() ? nullptr : &found->second;
}

}  // namespace rankrun::store
