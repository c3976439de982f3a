#include "tests/sim/verdict/ends.h"

#include <signal.h>

#include <span>
#include <string>

namespace rankrun::sim {
namespace {

using agent::WorkerRecord;

const std::string kTraceback = "Traceback (most recent call last):\n  File \"train.py\", line 8\n";

// How a program ends that has this error. "@": a traceback of Python; "#": the number of the
// rank that it names.
struct Program {
  const char* text;
  int signal_number = 0;  // 0: exit code 1
};

constexpr Program kOwnErrors[] = {
    {"@torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"},
    {"@requests.exceptions.ReadTimeout: HTTPConnectionPool(): Read timed out.\n"},
    {"thread 'main' panicked at src/a.rs:8:4:\nindex out of bounds\n"},
};

// Programs that have seen our signal raise these. Those that fail before it do not raise the same.
constexpr Program kLateErrors[] = {
    {"@ValueError: no data\n"},
    {"terminate called after throwing an instance of 'std::out_of_range'\n  what():  at\n",
     SIGABRT},
    {"panic: no such shard\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:7\n"},
};

constexpr Program kLostPeer[] = {
    {"@RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:30605.\n"},
    {"@ConnectionResetError: [Errno 104] Connection reset by peer\n"},
    {"@torch.distributed.DistBackendError: NCCL error, ncclRemoteError: A call failed\n"},
    {"@grpc._channel._InactiveRpcError: <status = StatusCode.UNAVAILABLE>\n"},
    {"terminate called after throwing an instance of 'std::system_error'\n  what():  read: "
     "Connection reset by peer\n",
     SIGABRT},
    {"recv: Connection reset by peer\n"},
    {"2026/11/26 12:00:00 sum: read tcp [::1]:1->[::1]:2: read: connection reset by peer\n"},
    {"Error: Os { code: 104, kind: ConnectionReset, message: \"Connection reset by peer\" }\n"},
    {"", SIGPIPE},
};

constexpr Program kNamesRank[] = {
    {"@DistError: AllReduce #12 of world: lost rank #: reset\n"},
    {"@RuntimeError: [Rank 0]: Rank # failed to pass monitoredBarrier in 3000 ms\n"},
    {"terminate called after throwing an instance of 'rankrun::PeerLostError'\n  what():  rank # "
     "(pid 77) died\n",
     SIGABRT},
    {"DistError: AllReduce #12 of world: rank # was killed by SIGKILL, not sent by rankrun\n"},
};

constexpr Program kCompares[] = {
    {"@RuntimeError: Detected mismatch between collectives on ranks. Rank 99 is running "
     "collective: A, but Rank # is running collective: B\n"},
};

constexpr Program kLostPeerInItsWords[] = {{"@MeshError: the ring is broken at step 7\n"}};

constexpr Program kTimedOut[] = {
    {"@TimeoutError: timed out\n"},
    {"@RuntimeError: [unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation\n"},
    {"@torch.distributed.DistStoreError: wait timeout after 30000ms, keys: /a/0\n"},
    {"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 0] "
     "Watchdog caught collective operation timeout: WorkNCCL(\n",
     SIGABRT},
    {"2026/11/26 12:00:00 gather: read tcp [::1]:1->[::1]:2: i/o timeout\n"},
};

constexpr Program kInputEnded[] = {
    {"@EOFError: Ran out of input\n"},
    {"@_pickle.UnpicklingError: pickle data was truncated\n"},
    {"2026/11/26 12:00:00 gather: unexpected EOF\n"},
    {"Error: failed to fill whole buffer\n"},
};

template <typename T>
const T& OneOf(std::span<const T> all, Dice& dice) {
  return all[static_cast<size_t>(dice.Below(static_cast<int>(all.size())))];
}

std::string TextOf(const Program& program, int named) {
  std::string text = program.text;
  if (text.starts_with('@')) text.replace(0, 1, kTraceback);
  for (const char* before : {"rank #", "Rank #"}) {
    if (size_t at = text.find(before); at != std::string::npos) {
      text.replace(at + 5, 1, std::to_string(named));
    }
  }
  return text;
}

// Returns lines that a program has written before its end. An exception among them was caught.
std::string MakeLog(Dice& dice) {
  std::string log;
  if (dice.Chance(15)) log += kTraceback + "ValueError: caught\n";
  int lines = dice.Chance(5) ? 500 : 25 + dice.Below(10);
  if (log.empty() && dice.Chance(70)) lines = dice.Below(3);
  for (int i = 0; i < lines; ++i) log += "step " + std::to_string(i) + ": loss 0.25, lr 3e-4\n";
  return log;
}

// The last one only by a program in Python.
constexpr const char* kLoggedErrors[] = {
    "| WARNING: ran out of memory with exception: 12; skipping batch\n",
    "2026-11-26 12:00:00 ERROR shard 7 is empty\n",
    "Traceback (most recent call last):\n  File \"train.py\", line 5\nValueError: no records\n",
};

std::string WithWarning(const std::string& log) {
  return log + "WARNING attempt 0: Connection refused, trying again\n";
}

int SignalOfAgent(Dice& dice) { return dice.Chance(80) ? SIGTERM : SIGKILL; }

// It ends with an exit code, or the signal of its runtime.
void EndBy(WorkerRecord& worker, const Program& program, const Actor& actor) {
  worker.stderr_tail += TextOf(program, actor.named);
  worker.exit = {.signaled = program.signal_number != 0,
                 .value = program.signal_number != 0 ? program.signal_number : 1};
}

// Our signal ends it. Shells and some handlers report that by an exit code.
void EndByOurSignal(WorkerRecord& worker, bool may_exit, Dice& dice) {
  const bool exits = may_exit && worker.sent_signal == SIGTERM && dice.Chance(20);
  worker.exit = {.signaled = !exits, .value = (exits ? 128 : 0) + worker.sent_signal};
}

void EndByOutsideSignal(WorkerRecord& worker, Dice& dice) {
  constexpr int kSignals[] = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGTERM};
  worker.exit = {.signaled = true, .value = OneOf(std::span<const int>(kSignals), dice)};
  const bool by_kernel = worker.exit->value == SIGKILL && dice.Chance(50);
  if (by_kernel) worker.kill_note = "the kernel's OOM killer killed a process of this job";
}

void EndWithCode(WorkerRecord& worker, Dice& dice) {
  constexpr int kCodes[] = {1, 2, 3, 42, 255};
  worker.exit = {.signaled = false, .value = OneOf(std::span<const int>(kCodes), dice)};
}

void EndWithoutStart(WorkerRecord& worker, Dice& dice) {
  const bool is_missing = dice.Chance(50);
  worker.pid = 0;
  worker.stderr_tail.clear();
  worker.start_error = is_missing ? Error{ErrorCode::kNotFound, "start train: no such file"}
                                  : Error{ErrorCode::kSystem, "start train: Permission denied"};
}

void EndWithError(WorkerRecord& worker, const Actor& actor, Dice& dice) {
  const auto end_by = [&](std::span<const Program> programs) {
    const Program& program = OneOf(programs, dice);
    EndBy(worker, program, actor);
    // Its shell joins the outputs: python train.py 2>&1 | tee log.
    const bool may_join = std::string_view(program.text).starts_with('@');
    if (may_join && dice.Chance(10)) worker.stdout_tail = std::exchange(worker.stderr_tail, "");
  };
  if (actor.end == End::kInputEnds) return end_by(kInputEnded);
  if (actor.end == End::kTimesOut) return end_by(kTimedOut);
  const std::span<const char* const> logged(kLoggedErrors);
  if (actor.end == End::kLogsAndLosesPeer) {
    worker.stderr_tail += OneOf(logged.first(logged.size() - 1), dice);
  }
  if (actor.end == End::kLogsAndRaises) worker.stderr_tail += OneOf(logged, dice);
  if (actor.end == End::kLosesPeer || actor.end == End::kLogsAndLosesPeer) return end_by(kLostPeer);
  if (actor.end == End::kLosesPeerInItsWords || actor.end == End::kLogsAndRaises) {
    return end_by(kLostPeerInItsWords);
  }
  if (actor.end == End::kComparesCalls) return end_by(kCompares);
  if (actor.end == End::kRaises) return end_by(kOwnErrors);
  if (actor.end == End::kRaisesLate) return end_by(kLateErrors);
  end_by(kNamesRank);
}

void MakeEnd(WorkerRecord& worker, const Actor& actor, Dice& dice) {
  switch (actor.end) {
    case End::kHangs:
      worker.hang = "sleeping (clock_nanosleep)";
      return EndByOurSignal(worker, true, dice);
    case End::kCannotStart:
      return EndWithoutStart(worker, dice);
    case End::kExitsWarned:
      worker.stderr_tail = WithWarning(worker.stderr_tail);
      return EndWithCode(worker, dice);
    case End::kExits:
      return EndWithCode(worker, dice);
    case End::kExitsLate:
      worker.sent_signal = SIGTERM;  // a handler has seen it
      return EndWithCode(worker, dice);
    case End::kDiesOfSignal:
      if (dice.Chance(20)) worker.stderr_tail = WithWarning(worker.stderr_tail);
      return EndByOutsideSignal(worker, dice);
    case End::kCutInException:
      worker.stderr_tail += kTraceback + "RuntimeError: no data\n";
      return EndByOurSignal(worker, false, dice);
    case End::kLeavesEarly:
    case End::kSucceedsLate:
      worker.exit = ProcessExit{};
      return;
    case End::kStopped:
      return EndByOurSignal(worker, true, dice);
    default:
      return EndWithError(worker, actor, dice);
  }
}

}  // namespace

bool MayBeLate(End end) { return MustBeLate(end) || end >= End::kInputEnds; }

bool MustBeLate(End end) {
  switch (end) {
    case End::kHangs:
    case End::kExitsLate:
    case End::kCutInException:
    case End::kRaisesLate:
    case End::kSucceedsLate:
    case End::kStopped:
      return true;
    default:
      return false;
  }
}

bool IsFailure(End end) { return end != End::kLeavesEarly && end != End::kSucceedsLate; }

WorkerRecord MakeEvidence(const Actor& actor, Dice& dice) {
  WorkerRecord worker;
  worker.global_rank = actor.rank;
  worker.pid = 1000 + actor.rank;
  worker.stderr_tail = MakeLog(dice);
  if (actor.is_late) worker.sent_signal = SignalOfAgent(dice);
  MakeEnd(worker, actor, dice);
  return worker;
}

}  // namespace rankrun::sim
