#include "agent/nodes/job_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "agent/control/cbor.h"
#include "agent/nodes/cbor_fields.h"
#include "agent/report/behind_rank.h"
#include "agent/report/left_out.h"
#include "agent/report/verdict.h"

namespace rankrun {

template <typename F>
void Fields(F& f, ProcessExit& m) {
  f("signaled", m.signaled);
  f("value", m.value);
}

constexpr ErrorCode LastOf(ErrorCode) { return ErrorCode::kSystem; }
template <typename F>
void Fields(F& f, Error& m) {
  f("code", m.code);
  f("message", m.message);
}

// Adds a time in whole microseconds, a year at most.
template <typename F>
void AsMicroseconds(F& f, const char* name, Duration& time) {
  constexpr auto kMaxMicroseconds = std::chrono::microseconds(std::chrono::hours(24 * 365)).count();
  auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  f(name, count);
  time = std::chrono::microseconds(std::clamp<int64_t>(count, 0, kMaxMicroseconds));
}

template <typename F>
void Fields(F& f, WorkerActivity& m) {
  f("what", m.what);
  AsMicroseconds(f, "lasted_us", m.lasted);
}

namespace agent {

template <typename F>
void Fields(F& f, ExpiredTimer& m) {
  f("scope", m.scope);
  f("signal_number", m.signal_number);
}

constexpr EndKind LastOf(EndKind) { return EndKind::kSucceeded; }
template <typename F>
void Fields(F& f, Ending& m) {
  f("kind", m.kind);
  f("lost_rank", m.lost_rank);
  f("error", m.error);
  f("logged", m.logged);
}

template <typename F>
void Fields(F& f, LastOperation& m) {
  f("what", m.what);
  f("group", m.group);
  f("is_under_way", m.is_under_way);
  f("has_failed", m.has_failed);
  AsMicroseconds(f, "ago_us", m.ago);
}

template <typename F>
void Fields(F& f, GroupCall& m) {
  f("group", m.group);
  f("what", m.what);
  f("sequence", m.sequence);
  f("is_message", m.is_message);
  f("is_done", m.is_done);
}

template <typename F>
void Fields(F& f, WorkerStacks& m) {
  f("frames", m.frames);
  f("note", m.note);
  f("file", m.file);
}

template <typename F>
void Fields(F& f, WorkerRecord& m) {
  // Clocks of machines differ, so send the time between the timer and the end.
  Duration expired_before = m.timer ? m.ended - m.timer->at : Duration::zero();
  f("node", m.node);
  f("global_rank", m.global_rank);
  f("local_rank", m.local_rank);
  f("pid", m.pid);
  f("exit", m.exit);
  f("start_error", m.start_error);
  f("sent_signal", m.sent_signal);
  f("passed_signal", m.passed_signal);
  f("timer", m.timer);
  AsMicroseconds(f, "timer_before_us", expired_before);
  if (m.timer) m.timer->at = m.ended - expired_before;
  f.Bytes("stdout_tail", m.stdout_tail);
  f.Bytes("stderr_tail", m.stderr_tail);
  f("stdout_file", m.stdout_file);
  f("stderr_file", m.stderr_file);
  f.Bytes("exception", m.exception);
  f("reads_terminal", m.reads_terminal);
  f("hang", m.hang);
  f("kill_note", m.kill_note);
  f("activity", m.activity);
  f("ending", m.ending);
  f("last_operations", m.last_operations);
  f("operations_file", m.operations_file);
  std::optional<std::vector<GroupCall>> calls;
  if (!m.calls.empty()) calls = m.calls;
  f("calls", calls);
  m.calls = calls.value_or(std::vector<GroupCall>{});
  std::optional<WorkerStacks> stacks;
  if (m.stacks != WorkerStacks{}) stacks = m.stacks;
  f("stacks", stacks);
  m.stacks = stacks.value_or(WorkerStacks{});
}

template <typename F>
void Fields(F& f, LeftOut& m) {
  f("kind", m.kind);
  f("exit", m.exit);
  f("sent_signal", m.sent_signal);
  f("is_mixed", m.is_mixed);
  f("bounds", m.bounds);
  f("count", m.count);
}

template <typename F>
void Fields(F& f, AttemptRecord& m) {
  f("attempt", m.attempt);
  f("max_restarts", m.max_restarts);
  f("restarts", m.restarts);
  f("is_free", m.is_free);
  f("own_cause", m.own_cause);
  f("cause_nodes", m.cause_nodes);
  f("restart_number", m.restart_number);
  f("next_reason", m.next_reason);
  f("stop_signal", m.stop_signal);
  f("exit_code", m.exit_code);
  AsMicroseconds(f, "lasted_us", m.lasted);
  AsMicroseconds(f, "waited_us", m.waited);
  f("cause", m.cause);
  f("workers", m.workers);
  f("left_out", m.left_out);
  f("store_refusals", m.store_refusals);
}

namespace {

// Limits for the output tail of a worker, in bytes. A report shows 20 lines of
// 300 characters of a primary failure. Other tails only show whether a peer was
// lost.
constexpr size_t kMaxPrimaryTail = 8 * 1024;
constexpr size_t kMaxOtherTail = 2 * 1024;
constexpr size_t kMaxShortText = 200;
// For what a report has beside its workers.
constexpr size_t kMaxFrameBytes = 16 * 1024;
// A report with more workers surely exceeds its limit.
constexpr size_t kMaxWorkers = 1024;

void KeepEnd(std::string& text, size_t max) {
  if (text.size() > max) text.erase(0, text.size() - max);
}

size_t SizeOfTexts(const WorkerRecord& worker) {
  size_t exception = worker.exception ? worker.exception->size() : 0;
  return worker.stderr_tail.size() + worker.stdout_tail.size() + exception;
}

void Trim(WorkerRecord& worker, size_t max) {
  const bool needs_output = FailedByItself(EndKindOf(worker)) || worker.stderr_tail.empty();
  KeepEnd(worker.stderr_tail, max);
  KeepEnd(worker.stdout_tail, needs_output ? max : 0);
  if (worker.exception) KeepEnd(*worker.exception, max);
}

void DropTexts(WorkerRecord& worker) {
  worker.exception.reset();
  worker.last_operations.clear();
  worker.operations_file.clear();
  worker.calls.clear();
  worker.stacks = {};
  for (std::string* text : {&worker.stderr_tail, &worker.stdout_tail, &worker.stderr_file,
                            &worker.stdout_file, &worker.kill_note, &worker.activity.what}) {
    text->clear();
  }
}

// Trims the tails and exceptions of a report to about half of `max_bytes`.
void TrimTexts(AttemptRecord& record, size_t max_bytes) {
  const size_t all_texts = max_bytes / 2;
  size_t total = 0;
  for (size_t i = 0; i < record.workers.size(); ++i) {
    WorkerRecord& worker = record.workers[i];
    const EndKind kind = EndKindOf(worker);
    size_t max = FailedByItself(kind)        ? kMaxPrimaryTail
                 : kind >= EndKind::kStopped ? kMaxShortText
                                             : kMaxOtherTail;
    size_t rest = std::max(all_texts - total, kMaxShortText);
    Trim(worker, i == record.cause ? kMaxPrimaryTail : std::min(max, rest));
    total = std::min(all_texts, total + SizeOfTexts(worker));
  }
}

// Moves the cause, one that names it, and other primary failures before their consequences. The
// name may be the reason why it is the cause.
void SortByImportance(AttemptRecord& record) {
  std::swap(record.workers[0], record.workers[record.cause]);
  record.cause = 0;
  const auto others = record.workers.begin() + 1;
  std::stable_partition(others, record.workers.end(),
                        [](const auto& worker) { return FailedByItself(EndKindOf(worker)); });
  const int cause = record.workers[0].global_rank;
  const auto names_cause = [&](const auto& worker) { return EndingOf(worker).lost_rank == cause; };
  const auto namer = std::find_if(others, record.workers.end(), names_cause);
  if (namer != record.workers.end()) std::rotate(others, namer, namer + 1);
}

// Keeps the cause, and of the others, without their texts, as many as fit.
void CountTheLeastImportant(AttemptRecord& record, size_t max_bytes) {
  size_t size = kMaxFrameBytes;
  size_t kept = 0;
  for (WorkerRecord& worker : record.workers) {
    if (kept > 0) DropTexts(worker);
    size += CborOf(cbor::Writer::ToJson(worker)).size();
    if (kept > 0 && size > max_bytes) break;
    ++kept;
  }
  LeaveOut(std::span(record.workers).subspan(kept), record.left_out);
  record.workers.resize(kept);
}

}  // namespace

std::string EncodeReport(const AttemptRecord& record, size_t max_bytes) {
  AttemptRecord copy = record;
  const bool is_large = copy.workers.size() > kMaxWorkers;
  TrimTexts(copy, max_bytes);
  if (!is_large) {
    std::string bytes = CborOf(cbor::Writer::ToJson(copy));
    if (bytes.size() <= max_bytes) return bytes;
  }
  // There are many workers, or paths are long. The cause keeps its texts, the
  // others at first a short exception and the paths of their logs.
  SortByImportance(copy);
  if (!is_large) {
    for (size_t i = 1; i < copy.workers.size(); ++i) Trim(copy.workers[i], kMaxShortText);
    std::string bytes = CborOf(cbor::Writer::ToJson(copy));
    if (bytes.size() <= max_bytes) return bytes;
  }
  CountTheLeastImportant(copy, max_bytes);
  return CborOf(cbor::Writer::ToJson(copy));
}

Result<AttemptRecord> DecodeReport(std::string_view bytes) {
  auto json = ParseCborMap(bytes);
  if (!json) return std::move(json).error();
  auto record = cbor::Read<AttemptRecord>(*json);
  if (!record) return record;
  if (record->cause >= record->workers.size()) {
    return Error{ErrorCode::kProtocol, "a report without its cause"};
  }
  for (const LeftOut& left_out : record->left_out) {
    const bool is_wrong = left_out.count < 0 || left_out.count > std::numeric_limits<int>::max() ||
                          std::ranges::any_of(left_out.bounds, [](int rank) { return rank < 0; });
    if (is_wrong) return Error{ErrorCode::kProtocol, "a report that counts wrongly"};
  }
  for (const WorkerRecord& worker : record->workers) {
    if (worker.stacks.frames.size() > kMaxRecordFrames) {
      return Error{ErrorCode::kProtocol, "a report with too long a stack"};
    }
    if (!worker.exit && !worker.start_error) {
      return Error{ErrorCode::kProtocol, "a report on a worker that has not ended"};
    }
  }
  return record;
}

AttemptRecord MergeReports(std::vector<AttemptRecord> parts, std::optional<int> first_rank) {
  AttemptRecord all = parts.front();
  all.workers.clear();
  all.left_out.clear();
  // Clocks of nodes differ, so of several equal candidates the one that was reported
  // first comes first.
  std::vector<int> order = {first_rank.value_or(-1)};
  for (AttemptRecord& part : parts) {
    order.push_back(part.workers[part.cause].global_rank);
    all.lasted = std::max(all.lasted, part.lasted);
    all.waited = std::max(all.waited, part.waited);
    LeaveOut(part.left_out, all.left_out);
    if (!part.store_refusals.empty()) all.store_refusals = std::move(part.store_refusals);
    std::ranges::move(part.workers, std::back_inserter(all.workers));
  }
  std::ranges::sort(all.workers, {}, &WorkerRecord::global_rank);
  for (const WorkerRecord& worker : all.workers) order.push_back(worker.global_rank);
  all.ended.clear();
  for (int rank : order) {
    auto found = std::ranges::lower_bound(all.workers, rank, {}, &WorkerRecord::global_rank);
    if (found != all.workers.end() && found->global_rank == rank)
      all.ended.push_back(static_cast<size_t>(found - all.workers.begin()));
  }
  NoteRankBehind(all);
  all.cause = ChooseCause(all.workers, all.ended);
  return all;
}

}  // namespace agent
}  // namespace rankrun
