#include "launcher/launch.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>

#include "agent/guardian/guardian.h"
#include "agent/job/job_signals.h"
#include "agent/machine/worker_gpus.h"
#include "agent/report/event_log.h"
#include "agent/supervisor/supervisor.h"
#include "base/printable.h"
#include "base/process/check_threads.h"
#include "base/process/core_dumps.h"
#include "base/process/open_files.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"
#include "base/version.h"
#include "base/write_all.h"
#include "launcher/flags/completion.h"
#include "launcher/flags/flags.h"
#include "launcher/plan/command_line.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/preload_settings.h"
#include "launcher/plan/program.h"
#include "launcher/plan/secret_settings.h"
#include "launcher/plan/torch_devices.h"
#include "launcher/settings/own_secret.h"
#include "launcher/show/explain.h"
#include "launcher/show/report.h"
#include "launcher/show/shell_line.h"
#include "launcher/torchrun_entry.h"

namespace rankrun::launcher {
namespace {

constexpr int kExitUsage = 2;
constexpr std::string_view kAsTorchrun = "as-torchrun";

// As in shells.
constexpr int kExitNotFound = 127;
constexpr int kExitCannotExecute = 126;

// Threads of libuv's pool. Seven tasks may hang and must not delay each other: both
// outputs, the log files, the events, the input, the evidence of kills, and the
// search for processes. The other threads are spare.
constexpr int kPoolThreads = 10;

// Returns the name under which the user started us.
std::string_view CommandOf(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  if (name == kTorchrun) return kTorchrun;
  bool is_launch = name == kRankrunLaunch || name == "torch.distributed.launch";
  return is_launch ? kRankrunLaunch : kRankrun;
}

// Makes a path absolute, because --chdir may follow. Does not change a name without
// "/", which will be searched in PATH.
std::string Absolute(const std::string& started_as) {
  if (started_as.find('/') == std::string::npos) return started_as;
  std::error_code error;
  auto path = std::filesystem::absolute(started_as, error);
  return error ? "" : path.string();
}

// Returns the beginning of a program's file, in which its imports are.
std::optional<std::string> ReadScript(const std::string& path) {
  constexpr size_t kBytes = 256 * 1024;
  std::ifstream file(path, std::ios::binary);
  std::string text(kBytes, '\0');
  file.read(text.data(), kBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  return file.bad() || text.empty() ? std::nullopt : std::optional(std::move(text));
}

// One run of the program, from the command line to the goodbye.
class Launch {
 public:
  Launch(const std::string& started_as, bool as_torchrun, agent::Incarnation& incarnation)
      : command_(as_torchrun ? kTorchrun : CommandOf(started_as)),
        started_as_(Absolute(started_as)),
        incarnation_(incarnation) {}

  agent::Goodbye Run(std::span<const std::string> arguments) {
    auto parsed = ReadArguments(command_, arguments);
    if (!parsed) return Refuse(parsed.error(), kExitUsage);
    const ParsedFlags& flags = parsed->flags;
    if (flags.Has("help")) return Print(HelpText(command_));
    if (flags.Has("version")) return Print("rankrun " + std::string(kVersion) + "\n");
    if (flags.Has(kAsTorchrun)) {
      return Refuse({ErrorCode::kInvalid, "--as-torchrun: want it as the first flag"}, kExitUsage);
    }
    if (flags.Has("install-torchrun")) return ChangeTorchrun(true);
    if (flags.Has("uninstall-torchrun")) return ChangeTorchrun(false);
    for (std::string_view name : {"completion", "print-completion"}) {
      auto shell = flags.Text(name);
      if (shell) return Print(CompletionScript(RankrunFlags(command_), *shell));
    }
    if (incarnation_.is_first()) WarnOfUnreadVariables();
    ShowSecretVariable();
    machine_.read_secret = [this](const std::string& path) { return ReadSecretOnce(path); };
    auto line = CollectSettings(
        command_, std::move(*parsed),
        {.environment = machine_.environment,
         .read_file = [](const std::string& path) { return ReadSettingsFile(path); },
         .change_folder = ChangeFolder,
         .scheduler = machine_.scheduler});
    if (!line) return Refuse(line.error(), kExitUsage);
    return Plan(*line);
  }

 private:
  void WarnOfUnreadVariables() const {
    for (const std::string& unread : UnreadVariables(RankrunFlags(command_), machine_.variables)) {
      PrintWarning(unread);
    }
  }

  // Keeps the secret for the next incarnation, because a pipe can be read only
  // once, and a file may be deleted or replaced.
  Result<SecretFile> ReadSecretOnce(const std::string& path) {
    if (auto kept = KeptSecret()) return SecretFile{std::move(*kept), false};
    auto file = ReadSecretFile(path);
    if (file) incarnation_.KeepSecretOfFile(file->text);
    return file;
  }

  // Without `may_make` (--explain, --dry-run), an absent file gives a placeholder.
  Result<std::string> ReadOwnSecretOnce(const std::string& path, bool may_make) {
    if (auto kept = KeptSecret()) return std::move(*kept);
    auto secret = may_make ? ReadOrMakeOwnSecret(path) : ReadOwnSecret(path);
    bool is_absent = !secret && secret.error().code == ErrorCode::kNotFound;
    if (is_absent && !may_make) return std::string(kMinSecretBytes, '-');
    if (secret) incarnation_.KeepSecretOfFile(*secret);
    return secret;
  }

  std::optional<std::string> KeptSecret() const {
    if (incarnation_.is_first()) return std::nullopt;
    return incarnation_.secrets().of_file.Read();
  }

  // Lets the program read the variable that the guardian has taken out of the environment.
  void ShowSecretVariable() {
    auto secret = incarnation_.secrets().of_variable.Read();
    if (!secret) return;
    machine_.environment = [secret, variables = machine_.environment](const std::string& name) {
      return name == kSecretVariable ? secret : variables(name);
    };
  }

  agent::Goodbye Plan(const CommandLine& line) {
    const Settings& settings = line.settings;
    auto request = MakeProgramRequest(settings, command_, line.program);
    if (!request) return Refuse(request.error(), kExitUsage);
    request->started_as = started_as_;
    machine_.ask_torch = [this, request = *request](const auto& environment) {
      return AskTorchOf(request, environment);
    };
    if (settings.IsOn("explain")) machine_.random_id = "<random UUID>";
    bool only_shown = settings.IsOn("explain") || settings.IsOn("dry-run");
    machine_.read_own_secret = [this, only_shown](const std::string& path) {
      return ReadOwnSecretOnce(path, !only_shown);
    };
    auto plan = MakeJobPlan(settings, command_, machine_);
    if (stop_signal_ != 0) return {.exit_code = 0, .end_signal = stop_signal_};
    if (!plan) return Refuse(plan.error(), kExitUsage);
    auto program = ResolveProgram(*request, machine_.environment);
    if (!program) {
      bool missing = program.error().code == ErrorCode::kNotFound;
      int exit_code = missing ? kExitNotFound : kExitCannotExecute;
      if (only_shown) return Refuse(program.error(), exit_code);
      return RefuseJob(plan->spec, program.error(), exit_code);
    }
    auto preload = ReadPreload(settings, *program, ReadScript, *plan);
    if (!preload) return Refuse(preload.error(), kExitUsage);
    plan->spec.program = std::move(program->program);
    if (!program->warning.empty()) plan->warnings.push_back(std::move(program->warning));
    plan->spec.program.as_torchrun = HasTorchrunDefaults(command_);
    if (!settings.IsOn("explain")) {
      for (const std::string& warning : plan->warnings) PrintWarning(warning);
    }
    if (only_shown) return Show(line, *plan);
    return Start(std::move(plan->spec), settings);
  }

  // Asks the Python of the workers; other programs are not expected to use PyTorch.
  Result<TorchDevices> AskTorchOf(const ProgramRequest& request,
                                  const std::vector<std::string>& environment) {
    auto program = ResolveProgram(request, machine_.environment);
    if (!program || !program->is_python) return TorchDevices();
    return AskTorch(
        program->program.file, environment,
        {.stop_fd = incarnation_.link().fd(), .is_stopped = [this] { return ReadStop(); }});
  }

  // Reads signals of the guardian. Returns whether one asked for the end; leaves the others to
  // the supervisor.
  bool ReadStop() {
    std::vector<agent::GuardianLink::Message> others;
    while (auto message = incarnation_.link().Receive()) {
      if (std::holds_alternative<agent::LinkClosed>(*message)) _exit(agent::kExitInternalError);
      auto* notice = std::get_if<agent::SignalNotice>(&*message);
      const bool is_end =
          notice != nullptr && agent::MeaningOf(notice->signal_number, agent::kEndSignals) !=
                                   agent::SignalMeaning::kPass;
      if (is_end) stop_signal_ = notice->signal_number;
      if (!is_end) others.push_back(*message);
    }
    for (const auto& message : others) incarnation_.link().PutBack(message);
    return stop_signal_ != 0;
  }

  agent::Goodbye ChangeTorchrun(bool installs) const {
    auto python = FindPython(started_as_, machine_.environment);
    if (!python) return Refuse(python.error(), kExitNotFound);
    const std::string folder = std::filesystem::absolute(*python).parent_path();
    const std::string own = std::filesystem::read_symlink("/proc/self/exe");
    auto done = installs ? InstallTorchrun(folder, own) : UninstallTorchrun(folder);
    return done ? Print(*done + "\n") : Refuse(done.error(), 1);
  }

  // Prints the plan; starts nothing.
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
    if (job.nodes && !job.nodes->secret.empty()) job.core_bytes = ForbidCoreDumps();
    SetPoolThreads(kPoolThreads);
    if (auto threads = CheckThreads(); !threads) {
      return RefuseJob(job, threads.error(), agent::kExitInternalError);
    }
    // Never destroyed, because a write to a stopped terminal may block the
    // destructors for ever. The process exits next.
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

  // Refuses a job after its command line was parsed: the events get an entry.
  agent::Goodbye RefuseJob(const agent::JobSpec& spec, const Error& error, int exit_code) const {
    agent::WriteRefusal(spec, error, exit_code);
    return Refuse(error, exit_code);
  }

  void PrintWarning(const std::string& line) const {
    // Under each name, because the agent's messages and the report begin with this, too.
    WriteAll(STDERR_FILENO, "rankrun: " + OneLine(line) + "\n");
  }

  agent::Goodbye Refuse(const Error& error, int exit_code) const {
    PrintWarning(error.message);
    return {.exit_code = exit_code, .end_signal = 0};
  }

  agent::Goodbye Print(const std::string& text) const {
    auto written = TryWriteAll(STDOUT_FILENO, text);
    if (!written) return Refuse(std::move(written).error().In("standard output"), 1);
    return {.exit_code = 0, .end_signal = 0};
  }

  const std::string_view command_;
  const std::string started_as_;
  agent::Incarnation& incarnation_;
  Machine machine_ = ThisMachine();
  int stop_signal_ = 0;  // that came before the start; 0: none
};

}  // namespace

void RunAgent(const std::vector<std::string>& arguments, agent::Incarnation& incarnation) {
  const bool as_torchrun = arguments.size() > 1 && arguments[1] == "--" + std::string(kAsTorchrun);
  const size_t own_words = std::min<size_t>(arguments.size(), as_torchrun ? 2 : 1);
  Launch launch(arguments.empty() ? std::string() : arguments[0], as_torchrun, incarnation);
  incarnation.link().Send(launch.Run(std::span(arguments).subspan(own_words)));
}

}  // namespace rankrun::launcher
