#include "base/uv/uv_work.h"

#include <uv.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/uv/uv_loop.h"

namespace rankrun {
namespace {

struct Job {
  uv_work_t request;
  std::function<void()> work;
  std::function<void()> done;
};

}  // namespace

void RunInPool(Loop& loop, std::function<void()> work, std::function<void()> done) {
  loop.AssertOnLoop();
  auto* job = new Job{{}, std::move(work), std::move(done)};
  job->request.data = job;
  int status = uv_queue_work(
      loop.raw(), &job->request,
      [](uv_work_t* request) { static_cast<Job*>(request->data)->work(); },
      [](uv_work_t* request, int) {
        std::unique_ptr<Job> finished(static_cast<Job*>(request->data));
        finished->done();
      });
  RANKRUN_CHECK(status == 0, "cannot queue work");  // only fails without a callback
}

void SetPoolThreads(int count) {
  setenv("UV_THREADPOOL_SIZE", std::to_string(count).c_str(), /*overwrite=*/1);
}

}  // namespace rankrun
