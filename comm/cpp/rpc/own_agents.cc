// The callee's side and the replies of calls that an agent of the program carries.

#include <exception>
#include <utility>

#include <rankrun/rpc/backend.h>

#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/running.h"
#include "comm/cpp/rpc/worker_agent.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using Kind = core::Outcome::Kind;

// Last byte of a reply. The text of an error is before it.
constexpr char kValue = 'v';
constexpr char kRaised = 'r';
constexpr char kUnknown = 'u';

}  // namespace

Payload RunMethod(const WorkerInfo& caller, const std::string& method, Payload arguments) {
  auto found = AllMethods().Find(method);
  if (!found) return {.bytes = found.error().message + kUnknown};
  core::Outcome outcome =
      core::Run(**found, {caller.id, caller.name}, MessageOf(std::move(arguments)));
  if (outcome.kind != Kind::kReply) return {.bytes = outcome.text + kRaised};
  Payload reply = PayloadOf(std::move(outcome.reply));
  reply.bytes += kValue;
  return reply;
}

Payload ResultOf(const WorkerInfo& callee, const std::string& method, Payload reply) {
  const char last = reply.bytes.empty() ? '\0' : reply.bytes.back();
  if (last != kValue && last != kRaised && last != kUnknown) {
    ThrowInvalid("the reply of worker " + callee.name + " to " + method +
                 " is not one of rpc::RunMethod");
  }
  reply.bytes.pop_back();
  if (last == kValue) return reply;
  const Kind kind = last == kRaised ? Kind::kRaised : Kind::kUnknown;
  std::rethrow_exception(
      ErrorOf(callee.name, method, {.kind = kind, .text = std::move(reply.bytes)}));
}

}  // namespace rankrun::rpc
