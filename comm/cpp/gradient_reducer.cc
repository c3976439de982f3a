#include "comm/cpp/gradient_reducer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/core/part_of.h"
#include "comm/training/divide.h"

namespace rankrun::comm {
namespace {

std::vector<BucketLayout> BucketsOf(const std::vector<Parameter>& parameters,
                                    const DataParallelOptions& options) {
  std::vector<ConstTensor> values;
  for (const Parameter& parameter : parameters) values.emplace_back(parameter.value);
  return MakeBuckets(values, {options.first_bucket_cap_bytes, options.bucket_cap_bytes});
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // empty tensors may have no memory
}

}  // namespace

GradientReducer::GradientReducer(ProcessGroup& group, const std::vector<Parameter>& parameters,
                                 const DataParallelOptions& options)
    : group_(group),
      parameters_(parameters),
      timeout_(options.timeout),
      buckets_(BucketsOf(parameters, options)),
      places_(parameters.size()),
      progress_(buckets_) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    memory_.emplace_back(new std::byte[buckets_[b].bytes()]);
    const size_t size = SizeOf(buckets_[b].dtype);
    for (const BucketPart& part : buckets_[b].parts) {
      places_[part.parameter] = {b, part.offset * size, part.count * size};
    }
  }
}

CallOptions GradientReducer::Async() const {
  CallOptions options = kAsync;
  options.timeout = timeout_;
  return options;
}

void GradientReducer::Begin(ReduceOp::Kind op) {
  op_ = op;
  progress_.Begin();
  calls_.clear();
}

void GradientReducer::Copy(size_t parameter) {
  const Place& place = places_[parameter];
  CopyBytes(memory_[place.bucket].get() + place.offset, parameters_[parameter].gradient.data,
            place.bytes);
}

void GradientReducer::CopyZeros(size_t parameter) {
  const Place& place = places_[parameter];
  std::memset(memory_[place.bucket].get() + place.offset, 0, place.bytes);
}

void GradientReducer::StartComplete() {
  while (auto bucket = progress_.TakeBucket()) Start(*bucket);
}

void GradientReducer::Start(size_t bucket) {
  const BucketLayout& layout = buckets_[bucket];
  const Memory& memory = memory_[bucket];
  if (calls_.empty()) first_call_ = MonotonicClock().Now();
  Tensor tensor(memory.get(), layout.dtype, layout.count);
  auto end = std::make_shared<std::atomic<TimePoint::rep>>(0);
  const PartOf part_of(ProgramCall::kDataParallel);
  Work work = group_.AllReduce(tensor, op_, Async());
  // The reduction may go on after an error of this rank and the end of this object.
  work.Then([memory, end] {
    end->store(MonotonicClock().Now().time_since_epoch().count(), std::memory_order_relaxed);
  });
  calls_.push_back({std::move(work), std::move(end)});
}

std::shared_ptr<GradientReducer::Bitmap> GradientReducer::StartBitmap(const Bitmap& used,
                                                                      Work& work) {
  auto bitmap = std::make_shared<Bitmap>(used);
  const PartOf part_of(ProgramCall::kDataParallel);
  work = group_.AllReduce(*bitmap, ReduceOp::kMax, Async());
  work.Then([bitmap] {});  // keeps the memory
  return bitmap;
}

void GradientReducer::Finish(const Bitmap* used, std::optional<int> divisor) {
  std::shared_ptr<Bitmap> anywhere;
  if (used != nullptr) {
    Work work;
    anywhere = StartBitmap(*used, work);
    work.Wait();
  }
  for (size_t b = 0; b < calls_.size(); ++b) {
    calls_[b].work.Wait();
    // The function that notes the end may come after the wake-up of this thread.
    TimePoint::rep end = calls_[b].end->load(std::memory_order_relaxed);
    last_end_ = end != 0 ? TimePoint(Duration(end)) : MonotonicClock().Now();
    CopyBack(b, anywhere.get(), divisor);
  }
}

void GradientReducer::CopyBack(size_t bucket, const Bitmap* used, std::optional<int> divisor) {
  const BucketLayout& layout = buckets_[bucket];
  if (divisor) Divide(layout.dtype, memory_[bucket].get(), layout.count, *divisor);
  for (const BucketPart& part : layout.parts) {
    if (used != nullptr && (*used)[part.parameter] == 0) continue;
    const Place& place = places_[part.parameter];
    CopyBytes(parameters_[part.parameter].gradient.data, memory_[bucket].get() + place.offset,
              place.bytes);
  }
}

void GradientReducer::MakeZeroStep(ReduceOp::Kind op, bool finds_unused) {
  Begin(op);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    std::memset(memory_[b].get(), 0, buckets_[b].bytes());
    Start(b);
  }
  if (finds_unused) {
    Work work;
    StartBitmap(Bitmap(parameters_.size(), 0), work);
    work.Wait();
  }
  for (const Call& call : calls_) call.work.Wait();
}

void GradientReducer::NoteTimes(StepTimes& times) const {
  times.comm_begin = first_call_;
  times.comm_end = last_end_;
}

}  // namespace rankrun::comm
