#include "cli/trace_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/own_file.h"
#include "base/trace/trace_reader.h"
#include "base/write_all.h"
#include "cli/output.h"
#include "cli/trace_clocks.h"
#include "cli/trace_json.h"

namespace rankrun::cli {
namespace {

namespace fs = std::filesystem;
using launcher::Flag;
using launcher::FlagValue;

constexpr std::array kFlags{Flag{.name = "output",
                                 .letter = 'o',
                                 .value = FlagValue::kFile,
                                 .value_name = "FILE",
                                 .default_value = "standard output",
                                 .help = "Write the trace to this file."},
                            kHelpFlag};

Error Invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

// Returns the files "rank_<r>.trace" below the folder.
Result<std::vector<std::string>> FindFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".trace" && path.filename().string().starts_with("rank_")) {
      files.push_back(path);
    }
  }
  if (error) return SystemError("read the folder " + folder, error.value());
  if (files.empty()) {
    return Error{ErrorCode::kNotFound,
                 folder +
                     ": has no traces; rankrun --trace makes them, of workers that use "
                     "librankrun"};
  }
  return files;
}

// Traces of a job without their operations.
struct Owners {
  std::vector<Trace> traces;  // by attempt and rank
  size_t incomplete = 0;      // further files
};

// Returns the traces' owners, if they are of one job. Warns of files that are incomplete.
Result<Owners> OwnersIn(const std::string& folder) {
  auto files = FindFiles(folder);
  if (!files) return std::move(files).error();
  Owners found;
  std::vector<Trace>& owners = found.traces;
  std::set<std::string> jobs;
  for (const std::string& file : *files) {
    auto owner = ReadTraceOwner(file);
    const bool is_incomplete = !owner && owner.error().code == ErrorCode::kNotFound;
    if (!owner && !is_incomplete) return std::move(owner).error();
    jobs.insert(fs::path(file).parent_path().parent_path());
    if (is_incomplete) {
      found.incomplete += 1;
      Fail(owner.error().message, kExitNo);
    } else {
      owners.push_back(*std::move(owner));
    }
  }
  if (owners.empty()) return Error{ErrorCode::kNotFound, folder + ": has no complete trace"};
  if (jobs.size() > 1) {
    return Invalid(folder + ": has the traces of " + std::to_string(jobs.size()) +
                   " jobs; want the folder of one of them, such as " + *jobs.begin());
  }
  std::ranges::sort(owners, [](const Trace& a, const Trace& b) {
    return std::pair(a.attempt, a.rank) < std::pair(b.attempt, b.rank);
  });
  auto same = std::ranges::adjacent_find(owners, [](const Trace& a, const Trace& b) {
    return a.attempt == b.attempt && a.rank == b.rank;
  });
  if (same == owners.end()) return found;
  return Invalid(same->path + " and " + std::next(same)->path +
                 " are of the same rank and attempt, so of two jobs with one run id, or of two "
                 "processes of a rank; want only one of them there");
}

// Output file, or standard output.
class Sink {
 public:
  static Result<Sink> Open(const std::optional<std::string>& path) {
    if (!path) return Sink(std::nullopt);
    auto draft = FileDraft::CreateOutput(*path);
    if (!draft) return std::move(draft).error();
    return Sink(std::move(*draft));
  }

  void Write(std::string_view bytes) {
    constexpr size_t kEnough = 1024 * 1024;
    buffer_ += bytes;
    if (buffer_.size() >= kEnough) Flush();
  }
  // The first write that failed; later ones are dropped.
  const Result<void>& state() const { return state_; }
  Result<void> End() {
    Flush();
    if (state_ && draft_) return draft_->Finish();
    return std::move(state_);
  }

 private:
  explicit Sink(std::optional<FileDraft> draft) : draft_(std::move(draft)) {}

  void Flush() {
    if (state_) state_ = TryWriteAll(draft_ ? draft_->fd() : STDOUT_FILENO, buffer_);
    buffer_.clear();
  }

  std::optional<FileDraft> draft_;  // none: standard output
  std::string buffer_;
  Result<void> state_;
};

// Returns an error if the output is one of the traces.
Result<void> CheckOutput(const std::optional<std::string>& path, const Owners& owners) {
  if (!path) return {};
  for (const Trace& trace : owners.traces) {
    std::error_code error;
    if (fs::equivalent(*path, trace.path, error)) {
      return Invalid("--output " + *path + ": is one of the traces; want another file");
    }
  }
  return {};
}

class Merge {
 public:
  // The sink outlives this.
  Merge(Owners owners, Sink& sink)
      : owners_(std::move(owners.traces)),
        incomplete_(owners.incomplete),
        json_([&](std::string_view text) { sink.Write(text); }) {
    for (const Trace& owner : owners_) {
      auto [scale, is_new] = scales_.emplace(BootOf(owner), owner.scale());
      if (!is_new) scale->second.Add(owner.scale());
    }
  }

  Result<void> Run() {
    if (auto ok = Align(); !ok) return ok;
    begin_ = INT64_MAX;
    for (const Trace& owner : owners_) {
      const int64_t first = ScaleOf(owner).Monotonic(owner.first.ticks);
      begin_ = std::min(begin_, clocks_.Aligned(owner, first));
    }
    json_.Begin();
    for (const Trace& owner : owners_) {
      auto trace = ReadTrace(owner.path, &ScaleOf(owner));
      if (!trace) return std::move(trace).error();
      operations_ += trace->operations.size();
      lost_ += trace->lost;
      json_.Add(*trace,
                [&](int64_t time) { return TimeSince(begin_, clocks_.Aligned(*trace, time)); });
    }
    json_.End(Facts());
    return {};
  }

  // Returns one line: "4 ranks, 812 operations; ...".
  std::string Summary() const {
    std::set<int> ranks;
    for (const Trace& owner : owners_) ranks.insert(owner.rank);
    std::string text = std::to_string(ranks.size()) + (ranks.size() == 1 ? " rank, " : " ranks, ") +
                       std::to_string(operations_) + " operations";
    if (lost_ > 0) text += "; no room for " + std::to_string(lost_);
    if (incomplete_ > 0) {
      text += "; without " + std::to_string(incomplete_) + " incomplete file";
      if (incomplete_ > 1) text += "s";
    }
    for (size_t i = 1; i < clocks_.hosts().size(); ++i) {
      const TraceClocks::Host& host = clocks_.hosts()[i];
      text +=
          "; clock of " + host.name +
          (host.error ? " within " + Microseconds(*host.error) + " us" : " as its system clock");
    }
    return text;
  }

 private:
  Result<void> Align() {
    std::set<std::string> boots;
    for (const Trace& owner : owners_) boots.insert(owner.boot);
    for (const Trace& owner : owners_) {
      if (boots.size() == 1) {  // one clock
        clocks_.Add(owner);
        continue;
      }
      auto trace = ReadTrace(owner.path, &ScaleOf(owner));
      if (!trace) return std::move(trace).error();
      clocks_.Add(*trace);
    }
    clocks_.Align();
    return {};
  }

  const TickScale& ScaleOf(const Trace& trace) const { return scales_.at(BootOf(trace)); }

  std::string Facts() const {
    const TraceClocks::Host& reference = clocks_.hosts().front();
    std::string text = "{\"run_id\":" + Quoted(owners_.front().run_id) +
                       ",\"begin_unix_ns\":" + std::to_string(begin_ + reference.realtime_offset) +
                       ",\"lost_operations\":" + std::to_string(lost_) + ",\"hosts\":[";
    for (const TraceClocks::Host& host : clocks_.hosts()) {
      if (&host != &reference) text += ",";
      text += "{\"host\":" + Quoted(host.name);
      if (host.error) text += ",\"clock_error_us\":" + Microseconds(*host.error);
      text += "}";
    }
    return text + "]}";
  }

  const std::vector<Trace> owners_;
  const size_t incomplete_;
  std::map<std::string, TickScale> scales_;  // by boot
  TraceClocks clocks_;
  TraceJson json_;
  int64_t begin_ = 0;  // time 0 of the trace on the clock of the reference
  uint64_t operations_ = 0;
  uint64_t lost_ = 0;
};

int RunTrace(const CommandLine& line) {
  auto owners = OwnersIn(line.operands[0]);
  if (!owners) return Fail(owners.error().message, kExitNo);
  std::optional<std::string> path = line.flags.Text("output");
  if (auto ok = CheckOutput(path, *owners); !ok) return Fail(ok.error().message, kExitNo);
  auto sink = Sink::Open(path);
  if (!sink) return Fail(sink.error().message, kExitNo);
  Merge merge(*std::move(owners), *sink);
  auto ok = merge.Run();
  if (ok) ok = sink->End();
  if (!ok) return Fail(ok.error().message, kExitNo);
  return path ? Print(*path + ": " + merge.Summary() + "\n") : kExitDone;
}

constexpr Command kCommand = {
    .title = "rankctl trace",
    .name = "trace",
    .operands = "FOLDER",
    .least_operands = 1,
    .most_operands = 1,
    .help = "Make one trace of those that the ranks of a job have written.",
    .details =
        "The folder is that of `rankrun --trace`, or the one of a job in it. The output is JSON in "
        "the Trace Event format, which Perfetto and chrome://tracing show: a process is a rank, a "
        "thread a process group. It may be made while the job runs, and after its ranks were "
        "killed. The clocks of several hosts are aligned by the collectives of the job; with "
        "`--output`, the command prints the error of this. An operation without an end, such as "
        "that of a rank that was killed, has the result \"under way\", and ends with the trace of "
        "its rank.",
    .flags = kFlags,
    .run = RunTrace};

}  // namespace

const Command& TraceCommand() { return kCommand; }

}  // namespace rankrun::cli
