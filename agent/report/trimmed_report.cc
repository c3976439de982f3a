#include "agent/report/trimmed_report.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "agent/report/left_out.h"
#include "agent/report/verdict.h"

namespace rankrun::agent {
namespace {

// Limits in bytes. JSON may need six for one.
constexpr size_t kMaxShown = 48 * 1024;  // the report as it was printed
constexpr size_t kMaxCauseText = 8 * 1024;
constexpr size_t kMaxOtherText = 2 * 1024;
constexpr size_t kMaxAllTexts = 48 * 1024;
constexpr size_t kMaxShort = 128;  // text of a worker that has no room for more
constexpr size_t kMaxWorkers = 256;

void KeepEnd(std::string& text, size_t max) {
  if (text.size() > max) text.erase(0, text.size() - max);
}

void KeepBegin(std::string& text, size_t max) {
  if (text.size() > max) text.resize(max);
}

void TrimTexts(WorkerRecord& worker, size_t max) {
  KeepEnd(worker.stderr_tail, max);
  KeepEnd(worker.stdout_tail, max);
  if (worker.exception) KeepEnd(*worker.exception, max);
}

// Drops all texts, and keeps how the worker ended.
void DropTexts(WorkerRecord& worker) {
  for (std::string* text : {&worker.stderr_tail, &worker.stdout_tail, &worker.stderr_file,
                            &worker.stdout_file, &worker.operations_file}) {
    text->clear();
  }
  worker.exception.reset();
  worker.last_operations.clear();
  worker.stacks = {};
  KeepBegin(worker.node, kMaxShort);
  KeepBegin(worker.hang, kMaxShort);
  KeepBegin(worker.kill_note, kMaxShort);
  if (worker.start_error) KeepBegin(worker.start_error->message, kMaxShort);
}

size_t SizeOfTexts(const WorkerRecord& worker) {
  size_t size = worker.stderr_tail.size() + worker.stdout_tail.size() + worker.stderr_file.size() +
                worker.stdout_file.size() + worker.operations_file.size() +
                worker.stacks.note.size() + worker.stacks.file.size();
  if (worker.exception) size += worker.exception->size();
  for (const std::string& frame : worker.stacks.frames) size += frame.size();
  for (const LastOperation& operation : worker.last_operations) {
    size += operation.what.size() + operation.group.size();
  }
  return size;
}

// Moves the cause and other primary failures before their consequences.
void SortByImportance(AttemptRecord& record) {
  std::swap(record.workers[0], record.workers[record.cause]);
  record.cause = 0;
  record.ended.clear();  // its indices mean nothing any more
  std::stable_partition(record.workers.begin() + 1, record.workers.end(),
                        [](const auto& worker) { return FailedByItself(EndKindOf(worker)); });
}

void TrimWorkers(AttemptRecord& record) {
  SortByImportance(record);
  if (record.workers.size() > kMaxWorkers) {
    LeaveOut(std::span(record.workers).subspan(kMaxWorkers), record.left_out);
    record.workers.resize(kMaxWorkers);
  }
  TrimTexts(record.workers[0], kMaxCauseText);
  size_t total = 0;
  for (WorkerRecord& worker : std::span(record.workers).subspan(1)) {
    TrimTexts(worker, kMaxOtherText);
    if (total + SizeOfTexts(worker) > kMaxAllTexts) DropTexts(worker);
    total += SizeOfTexts(worker);
  }
}

}  // namespace

void TrimReport(events::Report& report) {
  if (!report.record.workers.empty()) TrimWorkers(report.record);
  KeepBegin(report.record.own_cause, kMaxOtherText);
  if (report.text.size() <= kMaxShown) return;
  const size_t end = report.text.rfind('\n', kMaxShown);
  report.text.resize(end == std::string::npos ? kMaxShown : end);
  report.text += "\nThe rest of the report is not kept.\n";
}

}  // namespace rankrun::agent
