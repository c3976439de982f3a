#include "agent/output/job_output.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "agent/output/file_sink.h"
#include "agent/output/line_prefix.h"
#include "agent/output/old_folders.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/trace/trace_writer.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr Console::Channel kChannels[] = {Console::kStdout, Console::kStderr};

// Longest time that folders of earlier jobs delay the end of a job.
constexpr std::chrono::milliseconds kMaxRemovalTime{500};

// Large pipes are fast, but all of them together must stay small.
size_t PipeBytes(int workers) {
  constexpr size_t kOfAll = 16 * 1024 * 1024;
  size_t share = kOfAll / (2 * static_cast<size_t>(workers));
  return std::clamp<size_t>(share, 64 * 1024, 1024 * 1024);
}

}  // namespace

JobOutput::JobOutput(Loop& loop, const JobSpec& spec, const std::function<void()>& on_progress)
    : loop_(loop),
      spec_(spec),
      console_(loop, STDOUT_FILENO, STDERR_FILENO, on_progress),
      writer_(loop,
              {.on_progress = on_progress,
               .on_trouble =
                   [](const std::string& trouble) {
                     LogWarn(trouble + "; lost bytes are reported in the file, or at the end");
                   },
               .on_loss = [](const std::string& loss) { LogWarn(loss); }}) {}

Result<void> JobOutput::OpenLogs(const std::optional<JobFolder>& before) {
  const OutputSpec& output = spec_.output;
  if (!output.trace_dir.empty()) {
    trace_dir_ = Absolute(output.trace_dir);
    // Also shows whether the folder is writable.
    if (auto made = MakeTraceFolder(trace_dir_, TraceFolder(trace_dir_, spec_.run_id)); !made) {
      return Error{ErrorCode::kInvalid,
                   "--trace " + output.trace_dir + ": " + made.error().message};
    }
  }
  LogDirectory::Layout layout = LogDirectory::LayoutFor(output);
  if (before) logs_.emplace(*before, layout).Mark();
  if (output.no_files || before) return {};
  auto created = output.log_dir ? LogDirectory::CreateNamed(*output.log_dir, spec_.run_id)
                                : LogDirectory::CreateTemporary(spec_.run_id, layout);
  if (!created && output.log_dir) return std::move(created).error();
  if (!created) {
    LogWarn(created.error().message +
            "; there are no log files and no error files (set TMPDIR to a writable folder)");
    return {};
  }
  logs_.emplace(std::move(*created));
  if (!output.log_dir && layout == LogDirectory::Layout::kFolderPerWorker) {
    logs_->Keep();
    Say("rankrun: log files are in " + logs_->path() + "\n");
  }
  return {};
}

void JobOutput::CloseLogs() {
  if (!logs_) return;
  const JobFolder folder = logs_->ForRecord();
  const std::string left = logs_->Close();
  logs_.reset();
  if (!has_named_logs_) WriteLastWords(STDERR_FILENO, left);
  if (folder.temporary_base.empty()) return;
  const std::string parent = std::filesystem::path(folder.temporary_base).parent_path();
  for (const std::string& abandoned :
       RemoveOldFolders(parent, std::chrono::system_clock::now(),
                        std::chrono::steady_clock::now() + kMaxRemovalTime)) {
    WriteLastWords(STDERR_FILENO,
                   "rankrun: files of an earlier job, of which all processes were "
                   "killed, are in " +
                       abandoned + "\n");
  }
}

void JobOutput::Say(std::string_view lines) {
  has_named_logs_ |= logs_ && lines.find(logs_->path()) != lines.npos;
  console_.Say(lines);
}

void JobOutput::BeginAttempt(int attempt, int first_rank) {
  first_rank_ = first_rank;
  alone_ = OneIsShown();
  for (Console::Channel channel : kChannels) {
    bool is_out = channel == Console::kStdout;
    const auto& texts = is_out ? spec_.output.stdout_filters : spec_.output.stderr_filters;
    if (texts.empty() || !logs_) continue;
    std::string name = is_out ? "/filtered_stdout.log" : "/filtered_stderr.log";
    LogFile file(logs_->AttemptFolder(attempt) + name, spec_.output.log_limit);
    filtered_[channel] = writer_.Open(std::move(file), "filtered lines");
  }
}

void JobOutput::EndAttempt() {
  for (LogWriter::Entry*& entry : filtered_) {
    if (entry != nullptr) writer_.Close(std::exchange(entry, nullptr));
  }
}

std::unique_ptr<OutputStream> JobOutput::StreamFor(int attempt, int local_rank,
                                                   Console::Channel channel) {
  StreamPlan plan = PlanFor(local_rank, channel);
  bool is_out = channel == Console::kStdout;
  OutputStream::Options options{.pipe_bytes = PipeBytes(spec_.workers)};
  options.terminal =
      is_out && (spec_.output.pty || (plan.to_console && isatty(STDOUT_FILENO) != 0));
  ConsoleSink::Options shown = ConsoleOptions(local_rank, channel);
  if (plan.to_file) {
    options.file = FilePath(attempt, local_rank, channel);
    LogFile file(options.file, spec_.output.log_limit);
    auto* entry = writer_.Open(std::move(file), "rank " + std::to_string(local_rank));
    options.sinks.push_back(std::make_unique<FileSink>(writer_, entry));
  }
  if (plan.to_file && filtered_[channel] != nullptr) {
    FilterSink::Options filter{
        .texts = is_out ? spec_.output.stdout_filters : spec_.output.stderr_filters,
        .prefix = shown.prefix};
    if (filter.prefix.empty()) filter.prefix = "[" + spec_.role + std::to_string(local_rank) + "]:";
    options.sinks.push_back(
        std::make_unique<FilterSink>(writer_, filtered_[channel], std::move(filter)));
  }
  if (plan.to_console) {
    if (spec_.output.prefix_teed_only && !plan.to_file) shown.prefix.clear();
    options.sinks.push_back(std::make_unique<ConsoleSink>(loop_, console_, std::move(shown)));
  }
  return std::make_unique<OutputStream>(loop_, std::move(options));
}

StreamPlan JobOutput::PlanFor(int local_rank, Console::Channel channel) const {
  auto index = static_cast<size_t>(local_rank);
  WorkerOutput worker;
  if (index < spec_.output.workers.size()) worker = spec_.output.workers[index];
  StreamPlan plan = channel == Console::kStdout ? worker.standard_output : worker.standard_error;
  if (plan.to_file && !logs_) plan = {.to_console = true, .to_file = false};  // there is no file
  const auto& shown = spec_.output.shown_ranks;
  plan.to_console &= !shown || shown->contains(first_rank_ + local_rank);
  return plan;
}

bool JobOutput::OneIsShown() const {
  int shown = 0;
  for (int rank = 0; rank < spec_.workers && shown < 2; ++rank) {
    bool is_shown =
        PlanFor(rank, Console::kStdout).to_console || PlanFor(rank, Console::kStderr).to_console;
    shown += is_shown ? 1 : 0;
  }
  return shown <= 1;
}

bool JobOutput::AsksAtTerminal(int local_rank) const {
  const StdinPlan& plan = spec_.output.standard_input;
  const bool reads = plan.reader == StdinPlan::Reader::kInherit ||
                     (plan.reader == StdinPlan::Reader::kOne && plan.local_rank == local_rank);
  return reads && isatty(STDIN_FILENO) != 0;
}

std::string JobOutput::FilePath(int attempt, int local_rank, Console::Channel channel) const {
  return channel == Console::kStdout ? logs_->StdoutFile(attempt, local_rank)
                                     : logs_->StderrFile(attempt, local_rank);
}

ConsoleSink::Options JobOutput::ConsoleOptions(int local_rank, Console::Channel channel) const {
  PrefixValues values{.role_name = spec_.role,
                      .local_rank = local_rank,
                      .global_rank = first_rank_ + local_rank,
                      .host_name = HostName()};
  return {.channel = channel,
          // A single worker may mix its two streams, as it would without
          // rankrun.
          .writer = alone_ ? 0 : 2 * local_rank + channel,
          .local_rank = local_rank,
          .prefix = ExpandPrefix(spec_.output.prefix, values),
          .alone = alone_,
          .asks = AsksAtTerminal(local_rank)};
}

}  // namespace rankrun::agent
