#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <rankrun/rankrun.h>
#include <rankrun/store.h>

namespace rankrun::comm {
namespace {

using testing::ElementsAre;

void Note(void* context, const rankrun_operation_info* operation) {
  const bool is_end = operation->ended_ns >= operation->started_ns && operation->has_succeeded == 1;
  static_cast<std::vector<std::string>*>(context)->push_back(
      std::string(operation->name) + " " + operation->key + (is_end ? " ended" : ""));
}

TEST(COperationHooksTest, TheFunctionsAreCalledUntilTheRelease) {
  HashStore store;
  store.Set("a", "1");
  std::vector<std::string> notes;
  rankrun_operation_hooks* hooks = rankrun_operation_hooks_add(Note, Note, &notes);
  ASSERT_NE(hooks, nullptr);
  store.Get("a");
  rankrun_operation_hooks* ends = rankrun_operation_hooks_add(nullptr, Note, &notes);
  rankrun_operation_hooks_release(hooks);
  store.Get("a");
  rankrun_operation_hooks_release(ends);
  store.Get("a");
  EXPECT_THAT(notes, ElementsAre("StoreGet a", "StoreGet a ended", "StoreGet a ended"));
  rankrun_operation_hooks_release(nullptr);
}

}  // namespace
}  // namespace rankrun::comm
