#include "comm/rpc/methods.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace rankrun::comm::rpc {
namespace {

constexpr size_t kNamesInText = 20;

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

}  // namespace

Outcome Run(const Method& method, const Caller& caller, Message arguments) {
  try {
    return {.reply = method(caller, std::move(arguments))};
  } catch (const std::exception& error) {
    return {.kind = Outcome::Kind::kRaised, .text = error.what()};
  } catch (...) {
    return {.kind = Outcome::Kind::kRaised, .text = "an exception that is no std::exception"};
  }
}

Result<void> Methods::Add(const std::string& name, Method method) {
  if (name.empty() || name.size() > kMaxMethodName) {
    return Invalid("the name of a method has " + std::to_string(name.size()) +
                   " characters: want 1 to " + std::to_string(kMaxMethodName));
  }
  MutexLock lock(mutex_);
  auto made = std::make_shared<const Method>(std::move(method));
  if (methods_.emplace(name, std::move(made)).second) return {};
  return Invalid("the method " + name + " is registered already");
}

Result<std::shared_ptr<const Method>> Methods::Find(std::string_view name) const {
  MutexLock lock(mutex_);
  auto found = methods_.find(name);
  if (found != methods_.end()) return found->second;
  std::string text = "there is no method " + std::string(name) + ": want ";
  size_t named = 0;
  for (const auto& [known, method] : methods_) {
    if (known.starts_with('~')) break;  // the last ones
    if (named == kNamesInText) return Invalid(text + " ...");
    text += (named++ == 0 ? "" : ", ") + known;
  }
  return Invalid(named == 0 ? "no method is registered here" : text);
}

std::string RequestHead(std::string arguments, std::string_view method,
                        std::chrono::milliseconds limit) {
  auto limit_ms = static_cast<uint32_t>(std::clamp<int64_t>(limit.count(), 0, UINT32_MAX));
  arguments.append(reinterpret_cast<const char*>(&limit_ms), sizeof limit_ms);
  arguments += method;
  arguments += static_cast<char>(method.size());
  return arguments;
}

bool TakeRequest(std::string& head, Request& request) {
  if (head.empty()) return false;
  constexpr size_t kLimit = sizeof request.limit_ms;
  auto size = static_cast<size_t>(static_cast<unsigned char>(head.back()));
  if (size == 0 || head.size() - 1 < size + kLimit) return false;
  size_t begin = head.size() - 1 - size;
  request.method.assign(head, begin, size);
  std::memcpy(&request.limit_ms, head.data() + begin - kLimit, kLimit);
  head.resize(begin - kLimit);
  return true;
}

}  // namespace rankrun::comm::rpc
