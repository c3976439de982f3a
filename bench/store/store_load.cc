#include "bench/store/store_load.h"

#include <vector>

#include "bench/histogram.h"
#include "bench/store/store_peers.h"
#include "bench/store/store_traffic.h"

namespace rankrun::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::duration;

constexpr duration<double> kMaxWarmUp{0.5};

class Load {
 public:
  Load(const Target& target, const LoadOptions& options, Peers& peers)
      : target_(target), options_(options), peers_(peers) {}

  Result<LoadFigures> Run();

 private:
  struct Sender {
    Traffic traffic;
    SteadyClock::time_point sent{};
  };

  Result<void> Connect();
  Result<void> RunFor(duration<double> time);
  Result<void> Begin();
  Result<void> Finish();
  Result<void> SendBatch(size_t peer, SteadyClock::time_point now);
  Result<void> OnBytes(size_t peer, std::string_view bytes);
  LoadFigures Figures(duration<double> time) const;

  const Target& target_;
  const LoadOptions& options_;
  Peers& peers_;
  const Peers::OnBytes on_bytes_ = [this](size_t peer, std::string_view bytes) {
    return OnBytes(peer, bytes);
  };
  std::vector<Sender> senders_;
  Histogram latencies_;
  uint64_t requests_ = 0;
  size_t under_way_ = 0;
  bool sending_ = false;  // whether to send the next batch after the replies
};

Result<LoadFigures> Load::Run() {
  auto before = target_.ResidentKiB();
  if (!before) return before.error();
  if (auto ok = Connect(); !ok) return ok.error();
  auto open = target_.ResidentKiB();
  if (!open) return open.error();
  if (auto ok = RunFor(std::min(kMaxWarmUp, options_.time / 5)); !ok) return ok.error();
  latencies_.Clear();
  requests_ = 0;
  auto cpu_begin = target_.CpuNanoseconds();
  if (!cpu_begin) return cpu_begin.error();
  auto begin = SteadyClock::now();
  if (auto ok = RunFor(options_.time); !ok) return ok.error();
  LoadFigures figures = Figures(SteadyClock::now() - begin);
  auto cpu_end = target_.CpuNanoseconds();
  if (!cpu_end) return cpu_end.error();
  auto end = target_.ResidentKiB();
  if (!end) return end.error();
  if (target_.pid == 0) return figures;
  double cpu_us = static_cast<double>(*cpu_end - *cpu_begin) / 1e3;
  figures.server = {cpu_us / static_cast<double>(figures.requests), *before, *open, *end};
  return figures;
}

Result<void> Load::Connect() {
  senders_.reserve(options_.connections);
  for (size_t i = 0; i < options_.connections; ++i) senders_.push_back({Traffic(options_, i)});
  return AddAndGreet(peers_, options_.connections,
                     [this](size_t peer) { return senders_[peer].traffic.greeting(); });
}

// Starts and ends without requests in flight, so that the server's work is
// exactly the answered requests.
Result<void> Load::RunFor(duration<double> time) {
  auto end = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(time);
  if (auto ok = Begin(); !ok) return ok;
  while (SteadyClock::now() < end) {
    if (auto ok = peers_.Spin(on_bytes_); !ok) return ok;
  }
  return Finish();
}

Result<void> Load::Begin() {
  sending_ = true;
  auto now = SteadyClock::now();
  for (size_t i = 0; i < senders_.size(); ++i) {
    if (auto ok = SendBatch(i, now); !ok) return ok;
  }
  return {};
}

Result<void> Load::Finish() {
  sending_ = false;
  while (under_way_ > 0) {
    if (auto ok = peers_.Spin(on_bytes_); !ok) {
      return std::move(ok).error().In(std::to_string(under_way_) + " connections lack replies");
    }
  }
  return {};
}

Result<void> Load::SendBatch(size_t peer, SteadyClock::time_point now) {
  senders_[peer].sent = now;
  under_way_ += 1;
  return peers_.Send(peer, senders_[peer].traffic.batch());
}

Result<void> Load::OnBytes(size_t peer, std::string_view bytes) {
  Sender& sender = senders_[peer];
  auto complete = sender.traffic.Take(bytes);
  if (!complete) return complete.error();
  if (!*complete) return {};
  auto now = SteadyClock::now();
  latencies_.Add(static_cast<uint64_t>((now - sender.sent).count()));
  requests_ += sender.traffic.batch_requests();
  under_way_ -= 1;
  return sending_ ? SendBatch(peer, now) : Result<void>();
}

LoadFigures Load::Figures(duration<double> time) const {
  auto us = [this](double share) {
    return static_cast<double>(latencies_.Percentile(share)) / 1e3;
  };
  return {.requests = requests_,
          .seconds = time.count(),
          .us_p50 = us(0.5),
          .us_p90 = us(0.9),
          .us_p99 = us(0.99),
          .us_p999 = us(0.999),
          .us_max = static_cast<double>(latencies_.max()) / 1e3,
          .server = std::nullopt};
}

}  // namespace

Result<LoadFigures> RunLoad(const Target& target, const LoadOptions& options) {
  if (auto ok = AllowOpenFiles(options.connections); !ok) return ok.error();
  auto peers = Peers::Create(target.address, target.patience);
  if (!peers) return peers.error();
  return Load(target, options, **peers).Run();
}

}  // namespace rankrun::bench
