#include "comm/core/operation_events.h"

#include <pthread.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <rankrun/dtype.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/parse_number.h"
#include "base/trace/trace_writer.h"
#include "comm/core/hook_table.h"

namespace rankrun::comm {
namespace {

// The trace of this process; null: none. Never destroyed, because a thread may work
// until the process ends.
std::atomic<TraceWriter*> the_trace = nullptr;

// Whether OpenTrace has nothing to do any more in this process.
std::atomic<bool> is_trace_decided = false;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A forked process is no rank, and must not write the file of this one. It may have been
// forked while another thread opened the trace.
void EndTraceInChild() {
  is_trace_decided.store(true);
  the_trace.store(nullptr);
  ObserveOperations(Observer::kTrace, false);
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

TraceRecord RecordOf(uint8_t kind, const Operation& operation, uint32_t group) {
  TraceRecord record{};
  record.numbers =
      PackedKinds(kind, static_cast<uint8_t>(operation.dtype), operation.op, operation.global_root);
  record.number = operation.number;
  record.count = operation.count;
  record.bytes = operation.count * SizeOf(operation.dtype);
  record.tag = operation.tag;
  record.group = group;
  return record;
}

OperationInfo InfoOf(uint8_t kind, const Operation& operation, const std::string& group) {
  return {.id = 0,
          .name = NameOfTraced(kind),
          .group = group,
          .sequence = operation.number,
          .dtype = operation.dtype,
          .count = operation.count,
          .bytes = operation.count * SizeOf(operation.dtype),
          .peer = operation.global_root,
          .tag = operation.tag,
          .key = {},
          .started = {},
          .ended = {},
          .has_succeeded = false};
}

bool AreThereHooks() {
  return (internal::observers.load() & static_cast<uint8_t>(Observer::kHooks)) != 0;
}

// Returns the number of the text in the trace, which has each method once.
uint32_t TextOfMethod(TraceWriter& trace, std::string_view method) {
  static auto& mutex = *new Mutex;
  static auto& texts = *new std::map<std::string, uint32_t, std::less<>>;
  MutexLock lock(mutex);
  auto found = texts.find(method);
  if (found == texts.end()) found = texts.emplace(method, trace.AddText(method)).first;
  return found->second;
}

}  // namespace

void ObserveOperations(Observer observer, bool is_there) {
  const auto bit = static_cast<uint8_t>(observer);
  if (is_there) {
    internal::observers.fetch_or(bit);
  } else {
    internal::observers.fetch_and(static_cast<uint8_t>(~bit));
  }
}

void OpenTrace(std::optional<int> rank) {
  if (is_trace_decided.load(std::memory_order_acquire)) return;
  const std::string folder = Variable("RANKRUN_TRACE");
  if (!rank) rank = ParseNumber<int>(Variable("RANK"));
  if (folder.empty() || !rank) return;
  static const int is_watched = pthread_atfork(nullptr, nullptr, EndTraceInChild);
  static Mutex mutex;
  MutexLock lock(mutex);
  if (is_watched != 0 || is_trace_decided.load()) return;
  const std::string run_id = Variable("TORCHELASTIC_RUN_ID");
  auto writer = TraceWriter::Create(
      folder, {.rank = *rank,
               .attempt = ParseNumber<int>(Variable("TORCHELASTIC_RESTART_COUNT")).value_or(0),
               .run_id = run_id.empty() ? "none" : run_id});
  if (writer) {
    the_trace.store(writer->release());
    ObserveOperations(Observer::kTrace, true);
  } else if (writer.error().code != ErrorCode::kMismatch) {
    LogWarn("RANKRUN_TRACE: this rank is not traced: " + writer.error().message);
  }
  is_trace_decided.store(true, std::memory_order_release);
}

void OperationEvent::EndObserved(bool has_succeeded, int peer) const {
  TraceWriter* trace = the_trace.load(std::memory_order_acquire);
  if (record_ != nullptr && trace != nullptr) {
    if (!has_succeeded) record_->numbers |= kTraceFailed;
    if (peer >= 0) record_->numbers = WithPeer(record_->numbers, peer);
    trace->End(record_);
  }
  std::unique_ptr<HookedOperation> hooked(hooked_);
  if (hooked != nullptr) hooked->End(has_succeeded, peer);
}

OperationEvents::OperationEvents(std::string name, std::string_view key, int size, int global_rank,
                                 const FlightRecorder* recorder)
    : name_(std::move(name)), recorder_(recorder) {
  OpenTrace(global_rank);
  if (TraceWriter* trace = the_trace.load()) {
    traced_group_ = trace->AddGroup(name_, HashOf(key), size);
  }
}

OperationEvent OperationEvents::BeginObserved(uint8_t kind, const Operation& operation) const {
  TraceWriter* trace = the_trace.load(std::memory_order_acquire);
  TraceRecord* record = nullptr;
  if (trace != nullptr) record = trace->Begin(RecordOf(kind, operation, traced_group_));
  std::unique_ptr<HookedOperation> hooked;
  if (AreThereHooks()) hooked = HookedOperation::Start(InfoOf(kind, operation, name_));
  return {record, hooked.release()};
}

OperationEvent BeginRpc(const RpcOperation& rpc) {
  if (!AreOperationsObserved()) [[likely]]
    return {};
  TraceWriter* trace = the_trace.load(std::memory_order_acquire);
  TraceRecord* record = nullptr;
  const auto bytes = static_cast<uint8_t>(DType::kUInt8);
  if (trace != nullptr) {
    TraceRecord call{};
    call.numbers = PackedKinds(rpc.kind, bytes, 0, rpc.peer);
    call.count = call.bytes = rpc.bytes;
    call.text = TextOfMethod(*trace, rpc.method);
    record = trace->Begin(call);
  }
  std::unique_ptr<HookedOperation> hooked;
  if (AreThereHooks()) {
    Operation operation{.kind = Operation::Kind::kBarrier, .global_root = rpc.peer};
    operation.count = rpc.bytes;
    OperationInfo info = InfoOf(rpc.kind, operation, "");
    info.key = rpc.method;
    hooked = HookedOperation::Start(std::move(info));
  }
  return {record, hooked.release()};
}

OperationEvent BeginObservedStoreWait(uint8_t kind, std::string_view key) {
  TraceWriter* trace = the_trace.load(std::memory_order_acquire);
  TraceRecord* record = nullptr;
  if (trace != nullptr) {
    TraceRecord wait{};
    wait.numbers = PackedKinds(kind, static_cast<uint8_t>(DType::kUInt8), 0, -1);
    wait.text = trace->AddText(key);
    record = trace->Begin(wait);
  }
  std::unique_ptr<HookedOperation> hooked;
  if (AreThereHooks()) {
    OperationInfo info = InfoOf(kind, {.kind = Operation::Kind::kBarrier}, "");
    info.key = key;
    hooked = HookedOperation::Start(std::move(info));
  }
  return {record, hooked.release()};
}

}  // namespace rankrun::comm
