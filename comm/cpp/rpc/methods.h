#pragma once

#include <functional>
#include <string>

#include <rankrun/rpc.h>

#include "comm/rpc/message.h"
#include "comm/rpc/methods.h"

namespace rankrun::rpc {

// Methods that other workers may call. They stay for the life of the process.
comm::rpc::Methods& AllMethods();

// Carries out a call whose payloads have no references in them.
using Service = std::function<Payload(const WorkerInfo& caller, Payload arguments)>;
// Adds a method, also with a reserved name.
void AddMethod(const std::string& name, Service service);
// Runs a method or maker of this process, as Remote does. Throws UnknownMethodError.
OwnedValue RunMaker(const std::string& name, const WorkerInfo& caller, const Payload& arguments);

comm::rpc::Message MessageOf(Payload payload);
Payload PayloadOf(comm::rpc::Message message);
// Throws DistError for a payload that is too large.
void CheckSize(const Payload& payload);

}  // namespace rankrun::rpc
