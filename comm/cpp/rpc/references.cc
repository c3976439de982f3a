#include "comm/cpp/rpc/references.h"

#include <utility>

#include "comm/core/throw.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/trailer.h"

namespace rankrun::rpc {

using comm::rpc::HoldId;
using comm::rpc::ValueId;
using std::chrono::milliseconds;

namespace internal {

// Hold of this worker on a value; ends with the object.
class Hold {
 public:
  Hold(uint64_t of_generation, int of_owner, const ValueId& of_value, const HoldId& of_hold)
      : generation(of_generation), owner(of_owner), value(of_value), hold(of_hold) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

  const uint64_t generation;
  const int owner;
  const ValueId value;
  const HoldId hold;
  const comm::HomeProcess home;
  std::optional<Future<void>> made;  // no value: the owner has the value already
  // The value, once LocalValue has found it on its owner.
  mutable Mutex mutex;
  mutable std::shared_ptr<OwnedValue> local GUARDED_BY(mutex);
};

}  // namespace internal

namespace {

// Names that RegisterMethod refuses.
constexpr char kHold[] = "~hold";
constexpr char kDrop[] = "~!drop";
constexpr char kFetch[] = "~fetch";
constexpr char kMake[] = "~make";

// Reference as it travels, in the byte order of the workers.
struct Wire {
  ValueId value;
  HoldId hold;
  int32_t owner;
  int32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<Wire>);

using Count = uint16_t;

std::string TextOf(const Wire& wire) {
  std::string bytes;
  Append(bytes, wire);
  return bytes;
}

Wire WireIn(Payload payload) { return TakeLast<Wire>(payload.bytes); }

const internal::Hold& Checked(const std::shared_ptr<internal::Hold>& hold) {
  if (hold == nullptr) ThrowInvalid("the reference is to nothing");
  return *hold;
}

// Keeps RPC alive for a hold of it; throws once that has ended.
std::unique_ptr<RunningUse> UseFor(const internal::Hold& hold) {
  if (!hold.home.is_here()) {
    comm::Throw(hold.home.ErrorOfFork("the process of this reference", "it"));
  }
  auto running = RunningUse::Of(hold.generation);
  if (running == nullptr) ThrowInvalid("the reference is of RPC that has ended");
  return running;
}

// Makes a hold on a value of this worker. If its holder is lost already, nobody would end it.
void HoldHere(Running& running, const ValueId& value, const HoldId& hold) {
  comm::Unwrap(running.values.Hold(value, hold));
  // Afterwards: the end of a holder that is lost from now on ends its holds.
  if (hold.holder == running.self || !running.agent->IsLost(hold.holder)) return;
  running.values.Drop(value, hold);
  ThrowInvalid("worker " + std::to_string(hold.holder) + ", which was to get a reference, is lost");
}

// Tells the owner of a value that a hold has ended.
void SendDrop(Running& running, const Wire& wire) {
  if (wire.owner == running.self) return running.values.Drop(wire.value, wire.hold);
  try {
    running.agent->Call(running.agent->Find(wire.owner), kDrop, {TextOf(wire)},
                        running.timeout.load());
  } catch (const DistError&) {
    // The owner has ended, and its values with it.
  }
}

// Makes a hold of `receiver` on the value of a reference.
HoldId HoldFor(Running& running, const internal::Hold& hold, int receiver) {
  HoldId made = running.NewHold(receiver);
  if (hold.made) hold.made->Wait();
  if (hold.owner == running.self) {
    HoldHere(running, hold.value, made);
    return made;
  }
  Wire wire{.value = hold.value, .hold = made, .owner = hold.owner};
  try {
    running.agent->CallAndWait(running.agent->Find(hold.owner), kHold, {TextOf(wire)},
                               running.timeout.load());
  } catch (const DistTimeoutError&) {
    SendDrop(running, wire);  // the owner may have made it
    throw;
  }
  return made;
}

Reference ReferenceTo(Running& running, const Wire& wire) {
  return Reference(
      std::make_shared<internal::Hold>(running.generation, wire.owner, wire.value, wire.hold));
}

// Waits for a future; 0: without a limit.
template <typename T>
const typename Future<T>::Value& AwaitFor(const Future<T>& future, milliseconds limit) {
  if (limit > milliseconds(0) && !future.WaitFor(limit)) {
    throw DistTimeoutError("the value is not there after " + std::to_string(limit.count()) + " ms");
  }
  return future.Wait();
}

std::shared_ptr<OwnedValue> LocalOf(Running& running, const ValueId& id, milliseconds limit) {
  auto future = comm::Unwrap(running.values.Find(id));
  return std::static_pointer_cast<OwnedValue>(AwaitFor(future, limit));
}

Payload PayloadOf(const OwnedValue& value) {
  if (value.encode == nullptr) ThrowInvalid("the value stays with its owner: it has no payload");
  return value.encode(value.value);
}

// Waits for a call of kMake; errors name the method that it was to run.
void WaitNamed(const Future<Payload>& made, const std::string& method) {
  auto named = [&](const DistError& error) {
    std::string text = error.what();
    size_t at = text.find(kMake);
    return at == std::string::npos ? text : text.replace(at, sizeof kMake - 1, method);
  };
  try {
    made.Wait();
  } catch (const RemoteError& error) {
    throw RemoteError(named(error));
  } catch (const DistTimeoutError& error) {
    throw DistTimeoutError(named(error));
  } catch (const DistNetworkError& error) {
    throw DistNetworkError(named(error));
  }
}

// Makes a value by the method whose name is behind the wire form.
void MakeValue(Running& running, const WorkerInfo& caller, Payload request) {
  auto name_bytes = TakeLast<uint16_t>(request.bytes);
  if (request.bytes.size() < name_bytes) ThrowInvalid("a payload ends amid a name");
  std::string method = request.bytes.substr(request.bytes.size() - name_bytes);
  request.bytes.resize(request.bytes.size() - name_bytes);
  auto wire = TakeLast<Wire>(request.bytes);
  auto promise = comm::Unwrap(running.values.Make(wire.value, wire.hold));
  try {
    OwnedValue value = RunMaker(method, caller, Decode(running, std::move(request), caller.id));
    promise.SetValue(std::make_shared<OwnedValue>(std::move(value)));
  } catch (...) {
    promise.SetException(std::current_exception());
    throw;
  }
}

void EndHold(uint64_t generation, const Wire& wire) {
  if (auto running = RunningUse::Of(generation)) SendDrop(**running, wire);
}

}  // namespace

internal::Hold::~Hold() {
  if (!home.is_here()) return;  // a fork ends no hold of its parent
  Wire wire{.value = value, .hold = hold, .owner = owner};
  if (made && !made->done()) {  // the owner must have made the value before
    made->Then([of = generation, wire](const Future<void>&) { EndHold(of, wire); });
  } else {
    EndHold(generation, wire);
  }
}

Payload Encode(Running& running, Payload payload, const Route& route) {
  if (payload.references.size() > UINT16_MAX) {
    ThrowInvalid("the payload has " + std::to_string(payload.references.size()) +
                 " references: want at most 65535");
  }
  SendDevices(running, payload, route);
  for (const Reference& each : payload.references) {
    const internal::Hold& hold = Checked(each.hold());
    Append(payload.bytes, Wire{.value = hold.value,
                               .hold = HoldFor(running, hold, route.receiver.id),
                               .owner = hold.owner});
  }
  Append(payload.bytes, static_cast<Count>(payload.references.size()));
  payload.references.clear();
  return payload;
}

Payload Decode(Running& running, Payload payload, int sender) {
  auto count = TakeLast<Count>(payload.bytes);
  payload.references.resize(count);
  for (size_t i = count; i-- > 0;) {
    payload.references[i] = ReferenceTo(running, TakeLast<Wire>(payload.bytes));
  }
  ReceiveDevices(running, payload, sender);
  return payload;
}

WorkerInfo Reference::owner() const {
  const internal::Hold& hold = Checked(hold_);
  return (*UseFor(hold))->agent->Find(hold.owner);
}

bool Reference::is_owner() const {
  const internal::Hold& hold = Checked(hold_);
  return (*UseFor(hold))->self == hold.owner;
}

bool Reference::confirmed_by_owner() const {
  const internal::Hold& hold = Checked(hold_);
  return !hold.made || hold.made->done();
}

Payload Reference::ToHere(Timeout timeout) const {
  const internal::Hold& hold = Checked(hold_);
  auto running = UseFor(hold);
  Running& now = **running;
  milliseconds limit = now.LimitOf(timeout);
  if (hold.made) AwaitFor(*hold.made, limit);
  if (hold.owner == now.self) return PayloadOf(*LocalOf(now, hold.value, limit));
  Wire wire{.value = hold.value, .hold = hold.hold, .owner = hold.owner};
  Payload fetched =
      now.agent->CallAndWait(now.agent->Find(hold.owner), kFetch, {TextOf(wire)}, limit);
  return Decode(now, std::move(fetched), hold.owner);
}

const std::any& Reference::LocalValue(Timeout timeout) const {
  const internal::Hold& hold = Checked(hold_);
  auto running = UseFor(hold);
  Running& now = **running;
  milliseconds limit = now.LimitOf(timeout);
  if (hold.owner != now.self) {
    ThrowInvalid("the value is of worker " + now.agent->Find(hold.owner).name + ": want ToHere()");
  }
  if (hold.made) AwaitFor(*hold.made, limit);
  auto found = LocalOf(now, hold.value, limit);
  MutexLock lock(hold.mutex);
  hold.local = std::move(found);
  return hold.local->value;
}

Reference MakeReference(OwnedValue value) {
  RunningUse running;
  Running& now = *running;
  Wire wire{.value = {now.self, now.last_value.fetch_add(1) + 1},
            .hold = now.NewHold(now.self),
            .owner = now.self};
  auto promise = comm::Unwrap(now.values.Make(wire.value, wire.hold));
  promise.SetValue(std::make_shared<OwnedValue>(std::move(value)));
  return ReferenceTo(now, wire);
}

Reference Remote(const To& to, const std::string& method, Payload arguments, Timeout timeout) {
  RunningUse running;
  Running& now = *running;
  WorkerInfo owner = now.agent->Find(to);
  Wire wire{.value = {now.self, now.last_value.fetch_add(1) + 1},
            .hold = now.NewHold(now.self),
            .owner = owner.id};
  Payload request = Encode(now, std::move(arguments), {owner});
  CheckSize(request);
  Append(request.bytes, wire);
  request.bytes += method;
  Append(request.bytes, static_cast<uint16_t>(method.size()));
  auto hold = std::make_shared<internal::Hold>(now.generation, owner.id, wire.value, wire.hold);
  hold->made = now.agent->Call(owner, kMake, std::move(request), now.LimitOf(timeout))
                   .Then([method](const Future<Payload>& made) { WaitNamed(made, method); });
  return Reference(std::move(hold));
}

void RegisterReferenceMethods() {
  AddMethod(kHold, [](const WorkerInfo&, const Payload& request) {
    Wire wire = WireIn(request);
    RunningUse running;
    HoldHere(*running, wire.value, wire.hold);
    return Payload{};
  });
  AddMethod(kDrop, [](const WorkerInfo&, const Payload& request) {
    Wire wire = WireIn(request);
    RunningUse()->values.Drop(wire.value, wire.hold);
    return Payload{};
  });
  AddMethod(kFetch, [](const WorkerInfo& caller, const Payload& request) {
    RunningUse running;
    return Encode(*running, PayloadOf(*LocalOf(*running, WireIn(request).value, milliseconds(0))),
                  {caller, true});
  });
  AddMethod(kMake, [](const WorkerInfo& caller, const Payload& request) {
    RunningUse running;
    MakeValue(*running, caller, request);
    return Payload{};
  });
}

}  // namespace rankrun::rpc
