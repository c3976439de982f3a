#include "launcher/launch.h"

#include <unistd.h>

#include <span>

#include "agent/event_log.h"
#include "agent/guardian.h"
#include "agent/supervisor.h"
#include "agent/worker_gpus.h"
#include "base/open_files.h"
#include "base/printable.h"
#include "base/uv_loop.h"
#include "base/uv_work.h"
#include "base/write_all.h"
#include "launcher/command_line.h"
#include "launcher/completion.h"
#include "launcher/explain.h"
#include "launcher/flags.h"
#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/report.h"
#include "launcher/shell_line.h"
#include "launcher/version.h"

namespace rankrun::launcher {
namespace {

constexpr int kExitUsage = 2;

// As shells have it.
constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;

// Each of these may hang, and none may hold up another: both outputs, the log
// files, the events, the input, evidence, the search for kept processes; some
// are to spare.
constexpr int kPoolThreads = 10;

// How the user called us, without the folder.
std::string_view CommandOf(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return kRankrun;
  std::string_view name = arguments[0];
  return name.substr(name.rfind('/') + 1) == kTorchrun ? kTorchrun : kRankrun;
}

// One run of the program, from the command line to the goodbye.
class Launch {
 public:
  Launch(std::string_view command, agent::Incarnation& incarnation)
      : command_(command), incarnation_(incarnation) {}

  agent::Goodbye Run(std::span<const std::string> words) {
    auto arguments = ReadArguments(command_, words);
    if (!arguments) return Refuse(arguments.error(), kExitUsage);
    const ParsedFlags& flags = arguments->flags;
    if (flags.Has("help")) return Print(HelpText(command_));
    if (flags.Has("version")) return Print("rankrun " + std::string(kVersion) + "\n");
    if (auto shell = flags.Text("completion")) {
      return Print(CompletionScript(RankrunFlags(command_), *shell));
    }
    if (incarnation_.is_first()) WarnOfUnread();
    machine_.read_secret = [this](const std::string& path) { return ReadSecretOnce(path); };
    auto line = CollectSettings(
        command_, std::move(*arguments),
        {.environment = machine_.environment,
         .read_file = [](const std::string& path) { return ReadSettingsFile(path); },
         .change_folder = ChangeFolder,
         .scheduler = machine_.scheduler});
    if (!line) return Refuse(line.error(), kExitUsage);
    return Plan(*line);
  }

 private:
  void WarnOfUnread() const {
    for (const std::string& unread : UnreadVariables(RankrunFlags(command_), machine_.variables)) {
      WriteAll(STDERR_FILENO, std::string(command_) + ": " + OneLine(unread) + "\n");
    }
  }

  // A pipe is empty, and a file may be gone, for the next agent.
  Result<SecretFile> ReadSecretOnce(const std::string& path) {
    agent::JobRecord record = incarnation_.record();
    if (!incarnation_.is_first() && !record.secret.empty()) return SecretFile{record.secret, false};
    auto file = ReadSecretFile(path);
    if (!file) return file;
    record.secret = file->text;
    incarnation_.Write(std::move(record));
    return file;
  }

  agent::Goodbye Plan(const CommandLine& line) {
    const Settings& settings = line.settings;
    auto request = MakeProgramRequest(settings, command_, line.words);
    if (!request) return Refuse(request.error(), kExitUsage);
    if (settings.IsOn("explain")) machine_.random_id = "<random UUID>";
    auto plan = MakeJobPlan(settings, command_, machine_);
    if (!plan) return Refuse(plan.error(), kExitUsage);
    bool only_shown = settings.IsOn("explain") || settings.IsOn("dry-run");
    auto program = ResolveProgram(*request, machine_.environment);
    if (!program) {
      bool missing = program.error().code == ErrorCode::kNotFound;
      int exit_code = missing ? kExitNotFound : kExitCannotExecute;
      if (only_shown) return Refuse(program.error(), exit_code);
      return RefuseJob(plan->spec, program.error(), exit_code);
    }
    plan->spec.program = std::move(*program);
    plan->spec.program.halve_dollars = command_ == kTorchrun;
    if (!settings.IsOn("explain")) {
      for (const std::string& warning : plan->warnings) Tell(warning);
    }
    if (only_shown) return Show(line, *plan);
    return Start(std::move(plan->spec), settings);
  }

  // Starts nothing.
  agent::Goodbye Show(const CommandLine& line, JobPlan& plan) {
    if (auto enough = agent::CheckGpus(plan.spec); !enough) {
      return Refuse(line.settings.AtOrigin(std::move(enough).error()), kExitUsage);
    }
    auto share = agent::ShareMachine(plan.spec);
    if (!share) return Refuse(share.error(), kExitUsage);
    plan.share = std::move(*share);
    if (line.settings.IsOn("explain")) {
      return Print(ExplainText(RankrunFlags(command_), line, plan, machine_));
    }
    return Print(DryRunText(plan, machine_, line.settings.Text("chdir").value_or("")));
  }

  agent::Goodbye Start(agent::JobSpec job, const Settings& settings) {
    incarnation_.KeepRunId(job.run_id);
    job.open_files = RaiseOpenFiles();  // the workers get the limit that the user had
    SetPoolThreads(kPoolThreads);       // likewise
    // Never destroyed: the process ends next, and a write to a stopped terminal
    // may hold the loop for ever.
    auto& loop = *new Loop;
    auto& spec = *new agent::JobSpec(std::move(job));
    auto& supervisor = *new agent::Supervisor(loop, spec, incarnation_, FormatReport);
    if (auto opened = supervisor.Open(); !opened) {
      bool bad_flag = opened.error().code == ErrorCode::kInvalid;
      Error error = settings.AtOrigin(std::move(opened).error());
      return RefuseJob(spec, error, bad_flag ? kExitUsage : agent::kExitInternalError);
    }
    return supervisor.Run();
  }

  // A job of a command line that was understood.
  agent::Goodbye RefuseJob(const agent::JobSpec& spec, const Error& error, int exit_code) const {
    agent::WriteRefusal(spec, error, exit_code);
    return Refuse(error, exit_code);
  }

  void Tell(const std::string& line) const {
    WriteAll(STDERR_FILENO, std::string(command_) + ": " + OneLine(line) + "\n");
  }

  agent::Goodbye Refuse(const Error& error, int exit_code) const {
    Tell(error.message);
    return {.exit_code = exit_code, .end_signal = 0};
  }

  agent::Goodbye Print(const std::string& text) const {
    auto written = TryWriteAll(STDOUT_FILENO, text);
    if (!written) return Refuse(std::move(written).error().In("standard output"), 1);
    return {.exit_code = 0, .end_signal = 0};
  }

  const std::string_view command_;
  agent::Incarnation& incarnation_;
  Machine machine_ = ThisMachine();
};

}  // namespace

void RunAgent(const std::vector<std::string>& arguments, agent::Incarnation& incarnation) {
  Launch launch(CommandOf(arguments), incarnation);
  incarnation.link().Send(launch.Run(std::span(arguments).subspan(arguments.empty() ? 0 : 1)));
}

}  // namespace rankrun::launcher
