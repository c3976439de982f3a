#pragma once

#include <string>

#include "comm/rpc/message.h"

namespace rankrun::comm::rpc {

// End of a call.
struct Outcome {
  enum class Kind : unsigned char {
    kReply,
    kRaised,   // the method threw; `text` is what it said
    kUnknown,  // the callee has no such method
    kTimeout,
    kLost,   // no connection with the callee
    kEnded,  // RPC of this process has ended
  };
  Kind kind = Kind::kReply;
  Message reply = {};     // kReply
  std::string text = {};  // the cause otherwise
};

}  // namespace rankrun::comm::rpc
