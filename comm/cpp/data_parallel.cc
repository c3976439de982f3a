#include <any>
#include <string>
#include <utility>

#include <rankrun/training/data_parallel.h>

#include "comm/core/throw.h"
#include "comm/cpp/data_parallel_state.h"

namespace rankrun {
namespace {

constexpr const char* kDivision = "divide_by_initial_world_size";

struct Hook : JoinHook {
  explicit Hook(comm::DataParallelState& of) : state(of) {}
  void MainHook() override { state.ShadowStep(); }
  void PostHook(bool is_last_joiner) override { state.CopyFromLastJoiner(is_last_joiner); }
  comm::DataParallelState& state;
};

bool DivisionIn(const JoinArguments& arguments) {
  auto found = arguments.find(kDivision);
  if (found == arguments.end()) return true;
  const bool* value = std::any_cast<bool>(&found->second);
  if (value != nullptr) return *value;
  comm::Throw({ErrorCode::kInvalid, std::string("DataParallel in a Join: ") + kDivision +
                                        " has another type: want bool"});
}

}  // namespace

DataParallel::DataParallel(ProcessGroup& group, std::vector<Parameter> parameters,
                           DataParallelOptions options)
    : state_(std::make_unique<comm::DataParallelState>(group, std::move(parameters),
                                                       std::move(options))) {}

DataParallel::~DataParallel() = default;

void DataParallel::BeginStep() {
  state_->CheckNoStep();
  state_->LogSample();
  NotifyJoinContext(*this);
  state_->BeginStep(is_in_join());
}

void DataParallel::BeginBackward() { state_->BeginBackward(); }
void DataParallel::Ready(size_t index) { state_->Ready(index); }
void DataParallel::FinishStep() { state_->FinishStep(); }

DataParallel::NoSync::NoSync(DataParallel& model) : model_(model) {
  model_.state_->no_sync_scopes += 1;
}
DataParallel::NoSync::~NoSync() { model_.state_->no_sync_scopes -= 1; }

DataParallelLog DataParallel::log() const { return state_->log(); }

std::unique_ptr<JoinHook> DataParallel::MakeJoinHook(const JoinArguments& arguments) {
  state_->SetDividesByAll(DivisionIn(arguments));
  return std::make_unique<Hook>(*state_);
}

ProcessGroup& DataParallel::join_process_group() const { return state_->group(); }

}  // namespace rankrun
