#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/rpc/message.h"
#include "comm/rpc/outcome.h"

namespace rankrun::comm::rpc {

struct Caller {
  int id;
  const std::string& name;
};

// Carries out a call; may throw. The result's blobs own their bytes.
using Method = std::function<Message(const Caller& caller, Message arguments)>;
// Runs a method; its exception becomes kRaised.
Outcome Run(const Method& method, const Caller& caller, Message arguments);

// Methods that other workers may call, by name. Names that begin with '~' are the library's
// own, and are in no text.
// Thread: any.
class Methods {
 public:
  // Errors: kInvalid for a name that is empty, has more than kMaxMethodName characters, or is
  // taken.
  Result<void> Add(const std::string& name, Method method) EXCLUDES(mutex_);
  // Error: kInvalid, with some of the names that there are.
  Result<std::shared_ptr<const Method>> Find(std::string_view name) const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Method>, std::less<>> methods_ GUARDED_BY(mutex_);
};

constexpr size_t kMaxMethodName = 255;

// A call that another worker asks for.
struct Request {
  std::string method;
  uint32_t limit_ms;  // after which nobody waits for the reply; 0: none
};

// Head of a request: the arguments, the limit, the method's name, its length in a byte.
std::string RequestHead(std::string arguments, std::string_view method,
                        std::chrono::milliseconds limit);
// Takes the request off a head, which leaves the arguments. Returns false for a head that no
// RequestHead has made.
bool TakeRequest(std::string& head, Request& request);

// Whether a method runs although its caller waits no more: it frees something.
inline bool RunsLate(std::string_view method) { return method.starts_with("~!"); }

}  // namespace rankrun::comm::rpc
