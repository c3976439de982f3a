// Methods of this process, which other workers may call.

#include "comm/cpp/rpc/methods.h"

#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "comm/core/throw.h"
#include "comm/cpp/rpc/references.h"
#include "comm/cpp/rpc/running.h"
#include "comm/rpc/message.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;

constexpr size_t kMaxPayload = core::kMaxHeadBytes / 2;

// Makers by name, methods among them. They stay for the life of the process.
struct Makers {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<const Maker>, std::less<>> by_name GUARDED_BY(mutex);
};

Makers& AllMakers() {
  static auto& makers = *new Makers;
  return makers;
}

Payload PayloadIn(const std::any& value) { return std::any_cast<const Payload&>(value); }

void AddMaker(const std::string& name, std::shared_ptr<const Maker> maker) {
  Makers& makers = AllMakers();
  MutexLock lock(makers.mutex);
  makers.by_name.emplace(name, std::move(maker));
}

// Adds a method of the program, whose payloads may have references.
void AddProgramMethod(const std::string& name, Method method) {
  AddMethod(name, [method = std::move(method)](const WorkerInfo& caller, Payload arguments) {
    RunningUse running;
    Payload result = method(caller, Decode(*running, std::move(arguments), caller.id));
    CheckSize(result);
    return Encode(*running, std::move(result), {caller, true});
  });
}

void CheckName(const char* call, const std::string& name) {
  if (name.starts_with('~')) {
    ThrowInvalid(std::string(call) + ": the method " + name + " begins with '~': want a letter");
  }
}

}  // namespace

core::Methods& AllMethods() {
  static auto& methods = *new core::Methods;
  return methods;
}

core::Message MessageOf(Payload payload) {
  core::Message message{std::move(payload.bytes)};
  for (Attachment& each : payload.attachments) {
    message.blobs.push_back({std::move(each.owner), each.bytes});
  }
  return message;
}

Payload PayloadOf(core::Message message) {
  Payload payload{std::move(message.head)};
  for (core::Blob& each : message.blobs) {
    payload.attachments.push_back({std::move(each.owner), each.bytes});
  }
  return payload;
}

void CheckSize(const Payload& payload) {
  if (payload.bytes.size() > kMaxPayload) {
    ThrowInvalid("the payload has " + std::to_string(payload.bytes.size()) +
                 " bytes: want at most " + std::to_string(kMaxPayload) +
                 ", and larger data as attachments");
  }
  if (payload.attachments.size() > UINT16_MAX) {
    ThrowInvalid("the payload has " + std::to_string(payload.attachments.size()) +
                 " attachments: want at most 65535");
  }
}

void AddMethod(const std::string& name, Service service) {
  auto added = AllMethods().Add(
      name, [service = std::move(service)](const core::Caller& caller, core::Message arguments) {
        MethodScope scope;
        return MessageOf(service({caller.name, caller.id}, PayloadOf(std::move(arguments))));
      });
  if (!added) comm::Throw(std::move(added).error().In("RegisterMethod"));
}

void RegisterMaker(const std::string& name, Maker maker) {
  CheckName("RegisterMaker", name);
  if (maker == nullptr) ThrowInvalid("RegisterMaker: " + name + " has no function");
  auto kept = std::make_shared<const Maker>(std::move(maker));
  AddProgramMethod(name, [kept, name](const WorkerInfo& caller, const Payload& arguments) {
    OwnedValue value = (*kept)(caller, arguments);
    if (value.encode == nullptr)
      ThrowInvalid("the value of " + name + " stays here: want Remote()");
    return value.encode(value.value);
  });
  AddMaker(name, kept);
}

void RegisterMethod(const std::string& name, Method method) {
  CheckName("RegisterMethod", name);
  if (method == nullptr) ThrowInvalid("RegisterMethod: " + name + " has no function");
  AddProgramMethod(name, method);
  AddMaker(name,
           std::make_shared<const Maker>(
               [method = std::move(method)](const WorkerInfo& caller, const Payload& arguments) {
                 return OwnedValue{method(caller, arguments), PayloadIn};
               }));
}

OwnedValue RunMaker(const std::string& name, const WorkerInfo& caller, const Payload& arguments) {
  std::shared_ptr<const Maker> maker;
  {
    Makers& makers = AllMakers();
    MutexLock lock(makers.mutex);
    auto found = makers.by_name.find(name);
    if (found != makers.by_name.end()) maker = found->second;
  }
  if (maker != nullptr) return (*maker)(caller, arguments);
  throw UnknownMethodError(AllMethods().Find(name).error().message);
}

}  // namespace rankrun::rpc
