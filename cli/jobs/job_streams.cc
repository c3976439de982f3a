#include "cli/jobs/job_streams.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "cli/jobs/job_question.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPause{200};  // between two questions of --follow

uint64_t NumberOf(const Json& json, const char* name) {
  auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string TextOf(const Json& json, const char* name) {
  auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

int AttemptOf(const Json& json) {
  auto found = json.find("attempt");
  return found != json.end() && found->is_number_integer() ? found->get<int>() : 0;
}

// Copies the bytes from position `begin` to `end` of a log file. Returns false if the file
// does not have them, because it is on another host or was rotated.
bool CopyFromFile(const std::string& path, uint64_t begin, uint64_t end, SafeStream& to) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || static_cast<uint64_t>(file.tellg()) < end) return false;
  file.seekg(static_cast<std::streamoff>(begin));
  std::array<char, 64 * 1024> buffer;
  while (begin < end) {
    auto count = static_cast<std::streamsize>(std::min<uint64_t>(buffer.size(), end - begin));
    if (!file.read(buffer.data(), count)) return false;
    if (!to.Write({buffer.data(), static_cast<size_t>(count)})) return true;  // the reader is gone
    begin += static_cast<uint64_t>(count);
  }
  return true;
}

// Output of a rank, as much as the agent has in memory.
class LogReader {
 public:
  LogReader(FoundJob& job, int rank) : job_(job), rank_(rank) {}

  enum class Progress { kNone, kSome, kUnwritable };
  // Prints the output since the last call; kUnwritable if it cannot, as it says. Errors: those of
  // JobClient; kNotFound if there is no such rank.
  Result<Progress> Read();

 private:
  Result<Json> Ask();
  std::pair<bool, int> Worth(const Json& answer) const;
  bool Show(const Json& answer, const char* stream, SafeStream& to, uint64_t& position);

  FoundJob& job_;
  const int rank_;
  int attempt_ = -1;
  SafeStream out_stream_{STDOUT_FILENO};
  SafeStream error_stream_{STDERR_FILENO};
  uint64_t out_ = 0;  // positions in the streams
  uint64_t error_ = 0;
  bool is_unwritable_ = false;
  std::vector<std::string> missing_;  // nodes that were named last
};

// Output of the attempt that is shown comes first, then the latest attempt.
std::pair<bool, int> LogReader::Worth(const Json& answer) const {
  int attempt = AttemptOf(answer);
  bool has_more = !TextOf(answer.value("stdout", Json::object()), "text").empty() ||
                  !TextOf(answer.value("stderr", Json::object()), "text").empty();
  return {attempt == attempt_ && has_more, attempt};
}

Result<Json> LogReader::Ask() {
  auto answers = AskAgain(job_, {.kind = InspectRequest::Kind::kLogs,
                                 .all_nodes = true,
                                 .rank = rank_,
                                 .attempt = attempt_,
                                 .after = out_,
                                 .after_stderr = error_});
  if (!answers) return std::move(answers).error();
  // A node that the rank has left may have the end of an earlier attempt.
  std::optional<Json> best;
  for (const NodeAnswer& answer : answers->nodes) {
    Json json = Json::parse(answer.json, nullptr, false);
    if (json.contains("rank") && (!best || Worth(json) > Worth(*best))) best = std::move(json);
  }
  if (best) missing_.clear();
  if (best) return *std::move(best);
  auto missing = MissingOf(*answers);
  if (std::exchange(missing_, missing) != missing) NameMissing(*answers);  // not at each question
  return Error{ErrorCode::kNotFound, "no rank " + std::to_string(rank_) + " runs in this job"};
}

Result<LogReader::Progress> LogReader::Read() {
  auto answer = Ask();
  if (!answer) return std::move(answer).error();
  int number = AttemptOf(*answer);
  if (attempt_ >= 0 && number != attempt_) {  // its streams begin anew
    Fail("attempt " + std::to_string(number) + " begins", kExitNo);
    attempt_ = number;
    out_ = error_ = 0;
    answer = Ask();
    if (!answer) return std::move(answer).error();
  }
  attempt_ = AttemptOf(*answer);
  bool has_more = Show(*answer, "stdout", out_stream_, out_);
  has_more |= Show(*answer, "stderr", error_stream_, error_);
  if (is_unwritable_) return Progress::kUnwritable;
  return has_more ? Progress::kSome : Progress::kNone;
}

// Returns whether there was anything.
bool LogReader::Show(const Json& answer, const char* stream, SafeStream& to, uint64_t& position) {
  auto part = answer.find(stream);
  if (part == answer.end() || !part->is_object()) return false;
  auto text = part->find("text");
  if (text == part->end() || !text->is_string()) return false;
  uint64_t skipped = NumberOf(*part, "skipped");
  std::string path = TextOf(*part, "file");
  if (skipped > 0 && !CopyFromFile(path, position, position + skipped, to)) {
    std::string where = path.empty() ? "" : "; the log file is " + path;
    Fail(std::to_string(skipped) + " earlier bytes of " + stream + " are not in memory" + where,
         kExitNo);
  }
  position = NumberOf(*part, "end");
  const auto& bytes = text->get_ref<const std::string&>();
  auto written = to.Write(bytes);
  if (!written && !std::exchange(is_unwritable_, true)) {
    Fail(std::string(stream) + ": " + written.error().message, kExitNo);
  }
  return written && !bytes.empty();
}

}  // namespace

int RunLogs(const CommandLine& line) {
  auto rank = RankOf(line.operands[0]);
  if (!rank) return Fail("want a rank, such as 3, not \"" + line.operands[0] + "\"", kExitUsage);
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  bool follows = line.flags.Has("follow");
  LogReader reader(*job, *rank);
  bool has_shown = false;
  while (true) {
    auto progress = reader.Read();
    bool goes_on = follows && has_shown;
    if (!progress && goes_on && progress.error().code == ErrorCode::kPeerLost) return kExitDone;
    bool is_between_attempts = !progress && progress.error().code == ErrorCode::kNotFound;
    if (!progress && !(goes_on && is_between_attempts)) return FailJob(progress.error());
    has_shown = true;
    if (progress && *progress == LogReader::Progress::kSome) continue;
    if (progress && *progress == LogReader::Progress::kUnwritable) return kExitNo;
    if (!follows) return kExitDone;
    std::this_thread::sleep_for(kPause);
  }
}

int RunEvents(const CommandLine& line) {
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  bool follows = line.flags.Has("follow");
  uint64_t last = 0;
  while (true) {
    auto answers = job->client.Ask({.kind = InspectRequest::Kind::kEvents, .after = last});
    if (!answers) {
      bool is_lost = answers.error().code == ErrorCode::kPeerLost;
      if (is_lost && FindAgain(*job)) {
        last = 0;  // the next agent counts anew
        continue;
      }
      return is_lost && follows ? kExitDone : FailJob(answers.error());
    }
    if (answers->nodes.empty()) return Fail("the agent has not answered", kExitNo);
    Json json = Json::parse(answers->nodes[0].json, nullptr, false);
    if (uint64_t dropped = NumberOf(json, "dropped"); dropped > 0) {
      Fail(std::to_string(dropped) + " earlier events are not in memory", kExitNo);
    }
    std::string text;
    auto events = json.find("events");
    if (events != json.end() && events->is_array()) {
      for (const Json& event : *events) {
        text += event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      }
    }
    if (int failed = Print(text)) return failed;
    last = NumberOf(json, "last");
    if (!text.empty()) continue;
    if (!follows) return kExitDone;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace rankrun::cli
