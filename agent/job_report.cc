#include "agent/job_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>

#include "agent/cause.h"
#include "agent/cbor_fields.h"

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

// In whole microseconds, a year at the most.
template <typename F>
void AsMicroseconds(F& f, const char* name, Duration& time) {
  constexpr auto kLongest = std::chrono::microseconds(std::chrono::hours(24 * 365)).count();
  auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  f(name, count);
  time = std::chrono::microseconds(std::clamp<int64_t>(count, 0, kLongest));
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

template <typename F>
void Fields(F& f, WorkerRecord& m) {
  // Clocks of machines differ: only how long ago it was at the end matters.
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
  f("stdout_tail", m.stdout_tail);
  f("stderr_tail", m.stderr_tail);
  f("stdout_file", m.stdout_file);
  f("stderr_file", m.stderr_file);
  f("exception", m.exception);
  f("kill_note", m.kill_note);
  f("activity", m.activity);
}

template <typename F>
void Fields(F& f, AttemptRecord& m) {
  f("attempt", m.attempt);
  f("max_restarts", m.max_restarts);
  f("restarts", m.restarts);
  f("is_free", m.is_free);
  f("own_cause", m.own_cause);
  f("restart_number", m.restart_number);
  f("next_reason", m.next_reason);
  f("stop_signal", m.stop_signal);
  f("exit_code", m.exit_code);
  AsMicroseconds(f, "lasted_us", m.lasted);
  f("cause", m.cause);
  f("workers", m.workers);
}

namespace {

// Of last words: of who failed by itself, and of the others, of which only
// whether they lost a peer matters. A report shows 20 lines of 300 characters.
constexpr size_t kOwnWords = 8 * 1024;
constexpr size_t kOthersWords = 2 * 1024;
// Of all words in one report; a frame holds 1 MiB.
constexpr size_t kAllWords = 512 * 1024;
constexpr size_t kMostWorkers = 1024;
// Leaves room for the message around it.
constexpr size_t kLargest = 900 * 1024;

void KeepEnd(std::string& text, size_t most) {
  if (text.size() > most) text.erase(0, text.size() - most);
}

void Trim(WorkerRecord& worker, size_t most) {
  KeepEnd(worker.stderr_tail, most);
  KeepEnd(worker.stdout_tail, FailedByItself(worker) ? most : 0);
  if (worker.exception) KeepEnd(*worker.exception, most);
}

void DropWords(WorkerRecord& worker) {
  worker.exception.reset();
  for (std::string* text : {&worker.stderr_tail, &worker.stdout_tail, &worker.stderr_file,
                            &worker.stdout_file, &worker.kill_note, &worker.activity.what}) {
    text->clear();
  }
}

// So that it fits into a frame, whatever the job's size: who has failed by
// itself goes before consequences.
void Bound(AttemptRecord& record) {
  size_t words = 0;
  for (size_t i = 0; i < record.workers.size(); ++i) {
    WorkerRecord& worker = record.workers[i];
    size_t most = FailedByItself(worker) ? kOwnWords : kOthersWords;
    Trim(worker, i == record.cause ? kOwnWords : std::min(most, kAllWords - words));
    words = std::min(kAllWords, words + worker.stderr_tail.size() + worker.stdout_tail.size());
  }
  if (record.workers.size() <= kMostWorkers) return;
  std::swap(record.workers[0], record.workers[record.cause]);
  record.cause = 0;
  std::stable_partition(record.workers.begin() + 1, record.workers.end(), FailedByItself);
  record.workers.resize(kMostWorkers);
}

}  // namespace

std::string EncodeReport(const AttemptRecord& record) {
  AttemptRecord copy = record;
  Bound(copy);
  std::string bytes = cbor::Bytes(cbor::Writer::ToJson(copy));
  if (bytes.size() <= kLargest) return bytes;
  // Long exceptions or paths: the cause alone keeps them.
  for (size_t i = 0; i < copy.workers.size(); ++i) {
    if (i != copy.cause) DropWords(copy.workers[i]);
  }
  return cbor::Bytes(cbor::Writer::ToJson(copy));
}

Result<AttemptRecord> DecodeReport(std::string_view bytes) {
  auto json = cbor::Parse(bytes);
  if (!json) return std::move(json).error();
  auto record = cbor::Read<AttemptRecord>(*json);
  if (!record) return record;
  if (record->cause >= record->workers.size()) {
    return Error{ErrorCode::kProtocol, "a report without its cause"};
  }
  for (const WorkerRecord& worker : record->workers) {
    if (!worker.exit && !worker.start_error) {
      return Error{ErrorCode::kProtocol, "a report on a worker that has not ended"};
    }
  }
  return record;
}

AttemptRecord MergeReports(std::vector<AttemptRecord> parts, std::optional<int> cause_rank) {
  // Without a known cause: a node on which a worker failed by itself.
  auto main = std::ranges::find_if(
      parts, [](const AttemptRecord& part) { return FailedByItself(part.workers[part.cause]); });
  if (main != parts.end()) std::swap(parts.front(), *main);
  AttemptRecord all = std::move(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    all.lasted = std::max(all.lasted, parts[i].lasted);
    std::ranges::move(parts[i].workers, std::back_inserter(all.workers));
  }
  const int rank = cause_rank.value_or(all.workers[all.cause].global_rank);
  std::ranges::sort(all.workers, {}, &WorkerRecord::global_rank);
  auto cause = std::ranges::find(all.workers, rank, &WorkerRecord::global_rank);
  bool is_here = cause != all.workers.end();
  all.cause = is_here ? static_cast<size_t>(cause - all.workers.begin()) : 0;
  return all;
}

}  // namespace agent
}  // namespace rankrun
