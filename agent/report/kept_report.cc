#include "agent/report/kept_report.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "agent/report/report_folder.h"
#include "base/log.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kEndTimeout{1};
// From a report to the write, so that restarts in quick succession share one.
constexpr std::chrono::milliseconds kSavePause{200};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// One write of the file.
struct KeptReport::Task {
  std::string folder;
  std::string name;
  ReportDocument document;
  bool has_earlier;
  ReportDocument earlier = {};  // of an earlier agent
  Result<void> state = {};

  void Run() {
    if (has_earlier) {
      earlier = ReportDocument::Parse(ReadAll(folder + "/" + name));
      document.AddEarlier(earlier);
    }
    if (!document.has_report()) return;
    state = MakeReportFolder(folder);
    if (state) state = WriteReport(folder, name, document.Text());
  }
};

KeptReport::KeptReport(Loop& loop, const JobSpec& spec, const JobRecord& job, Callbacks callbacks)
    : loop_(loop),
      spec_(spec),
      name_(ReportFileName(spec.run_id, job.node_id)),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<KeptReport*>(this)),
      has_earlier_(job.incarnation > 0),
      save_timer_(loop, [this] { Save(); }),
      end_timer_(loop, [this] {
        is_late_ = true;
        callbacks_.on_progress();
      }) {}

KeptReport::~KeptReport() { *self_ = nullptr; }

void KeptReport::Note(const std::shared_ptr<const events::Event>& event) {
  document_.Add(event);
  const bool is_start = std::holds_alternative<events::AttemptStarted>(event->payload);
  const bool is_report = std::holds_alternative<events::Report>(event->payload);
  const bool is_end = std::holds_alternative<events::JobEnded>(event->payload);
  has_attempt_ |= is_start;
  // The file of an earlier agent goes on with this one.
  const bool is_begin = has_earlier_ && is_start;
  const bool has_file = document_.has_report() || has_earlier_;
  const bool is_due = has_file && (is_report || is_end || is_begin);
  if (!is_due || !has_attempt_ || !callbacks_.is_keeper()) return;
  if (!is_end) {
    if (!std::exchange(is_due_, true)) save_timer_.Start(kSavePause);
    return;
  }
  save_timer_.Stop();
  Save();
  end_timer_.Start(kEndTimeout);
}

void KeptReport::Save() {
  is_due_ = false;
  is_outdated_ = is_writing_;
  if (std::exchange(is_writing_, true)) return;
  document_.Format();
  auto task = std::make_shared<Task>(Task{.folder = spec_.report_folder,
                                          .name = name_,
                                          .document = document_,
                                          .has_earlier = has_earlier_});
  RunInPool(
      loop_, [task] { task->Run(); },
      [task, self = self_] {
        if (*self != nullptr) (*self)->OnSaved(*task);
      });
}

void KeptReport::OnSaved(Task& task) {
  is_writing_ = false;
  if (std::exchange(has_earlier_, false)) document_.AddEarlier(std::move(task.earlier));
  if (!task.state) OnFailure(task.state.error());
  if (is_outdated_) Save();
  callbacks_.on_progress();
}

// A default folder that cannot be made is no reason to warn: many containers have no home.
void KeptReport::OnFailure(const Error& error) {
  const std::string text = "the report is not kept: " + error.message;
  const bool is_of_folder = error.message.starts_with("create the folder");
  if (is_of_folder && !spec_.report_folder_typed) return LogInfo(text);
  if (!std::exchange(has_warned_, true)) callbacks_.show("rankrun: " + text + "\n");
}

}  // namespace rankrun::agent
