#include "launcher/launch.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/guardian.h"
#include "agent/supervisor.h"
#include "base/open_files.h"
#include "base/uv_loop.h"
#include "base/write_all.h"
#include "launcher/command_line.h"
#include "launcher/program.h"
#include "launcher/report.h"
#include "launcher/version.h"

extern char** environ;

namespace rankrun::launcher {
namespace {

constexpr int kExitUsage = 2;

// As shells have it.
constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;

agent::Goodbye Refuse(const Error& error, int exit_code) {
  WriteAll(STDERR_FILENO, "rankrun: " + error.message + "\n");
  return {.exit_code = exit_code, .end_signal = 0};
}

agent::Goodbye Print(const std::string& text) {
  auto written = TryWriteAll(STDOUT_FILENO, text);
  if (!written) return Refuse(std::move(written).error().In("standard output"), 1);
  return {.exit_code = 0, .end_signal = 0};
}

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// A random (version 4) UUID: the name of a job that was given none.
std::string RandomRunId() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return std::to_string(getpid());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0x0f];
  }
  return text;
}

agent::JobSpec MakeJobSpec(const Options& options, agent::Program program) {
  agent::JobSpec spec;
  spec.workers = options.workers;
  spec.max_restarts = options.max_restarts;
  spec.shutdown_timeout = options.shutdown_timeout;
  spec.save_timeout = options.save_timeout;
  spec.time_limit = options.time_limit;
  spec.continue_on_failure = options.continue_on_failure;
  if (options.end_signals) spec.end_signals = *options.end_signals;
  spec.master_addr_typed = options.master_addr.has_value();
  spec.master_addr = options.master_addr.value_or(spec.master_addr);
  spec.master_port = options.master_port;
  if (options.master_port == 0) spec.master_port.reset();  // 0: a free one
  spec.store_max_value = options.store_max_value;
  spec.run_id = RandomRunId();
  spec.program = std::move(program);
  for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
  spec.open_files = RaiseOpenFiles();  // the workers get the limit that the user had
  return spec;
}

agent::Goodbye Launch(const Options& options, agent::GuardianLink& link) {
  auto program = ResolveProgram(
      {.words = options.program, .no_python = options.no_python, .module = options.module},
      Variable);
  if (!program) {
    bool missing = program.error().code == ErrorCode::kNotFound;
    return Refuse(program.error(), missing ? kExitNotFound : kExitCannotExecute);
  }
  // Never destroyed: the process ends next, and a write to a stopped terminal
  // may hold the loop for ever.
  auto& loop = *new Loop;
  auto& spec = *new agent::JobSpec(MakeJobSpec(options, std::move(*program)));
  auto& supervisor = *new agent::Supervisor(loop, spec, link, FormatReport);
  if (auto opened = supervisor.Open(); !opened) {
    bool bad_flag = opened.error().code == ErrorCode::kInvalid;
    return Refuse(opened.error(), bad_flag ? kExitUsage : agent::kExitInternalError);
  }
  return supervisor.Run();
}

agent::Goodbye Run(const std::vector<std::string>& arguments, agent::GuardianLink& link) {
  auto options = ParseCommandLine(arguments);
  if (!options) return Refuse(options.error(), kExitUsage);
  if (options->help) return Print(HelpText());
  if (options->version) return Print(std::string("rankrun ") + kVersion + "\n");
  return Launch(*options, link);
}

}  // namespace

void RunAgent(const std::vector<std::string>& arguments, agent::GuardianLink link) {
  link.Send(Run(arguments, link));
}

}  // namespace rankrun::launcher
