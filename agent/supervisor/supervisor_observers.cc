#include "agent/supervisor/supervisor.h"

// The part of Supervisor that opens its observers.

namespace rankrun::agent {

Result<void> Supervisor::OpenObservers() {
  Metrics::Sources sources{
      .steps = [this] { return attempt_ ? attempt_->LastSteps() : std::vector<WorkerStep>(); },
      .place = [this]() -> const NodePlace& { return place_; },
      .store = [this] { return store_.Stats(); }};
  auto observers =
      JobObservers::Open(loop_, spec_, incarnation_.record(), std::move(sources),
                         {.is_keeper = [this] { return place_.node_rank == 0; },
                          .show = [this](const std::string& line) { output_.Say(line); },
                          .on_progress = [this] { OnOutputProgress(); }});
  if (!observers) return std::move(observers).error();
  observers_ = std::move(*observers);
  return {};
}

}  // namespace rankrun::agent
