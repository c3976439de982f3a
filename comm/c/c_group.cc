#include <rankrun/backend.h>
#include <rankrun/c/group.h>
#include <rankrun/context.h>
#include <rankrun/device_backend.h>
#include <rankrun/distributed.h>
#include <rankrun/step_notice.h>
#include <rankrun/subgroups.h>

#include "comm/c/c_guard.h"

struct rankrun_context {
  rankrun_context(const char* name, const rankrun::InitOptions& options) : context(name, options) {}

  rankrun::Context context;
};

struct rankrun_saving {
  rankrun::SavingNotice notice;
};

namespace {

using rankrun::GlobalRank;
using rankrun::GroupRank;
using rankrun::ProcessGroup;
using rankrun::comm::Clear;
using rankrun::comm::GroupOf;
using rankrun::comm::Guarded;
using rankrun::comm::GuardedOr;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::OptionsOf;
using rankrun::comm::Text;
using rankrun::comm::ThrowInvalid;
using rankrun::comm::TimeoutOf;
using rankrun::comm::WriteOptions;

rankrun_group* HandleOf(ProcessGroup& group) { return reinterpret_cast<rankrun_group*>(&group); }

constexpr int32_t kNoDevice = -1;

rankrun_nccl_options NcclDefaults() {
  return {.size = sizeof(rankrun_nccl_options),
          .high_priority_stream = 0,
          .min_ctas = 0,
          .max_ctas = 0};
}

rankrun_init_options InitDefaults() {
  const rankrun::InitOptions defaults;
  return {.size = sizeof(rankrun_init_options),
          .rank = defaults.rank,
          .world_size = defaults.world_size,
          .reserved = 0,
          .timeout_ms = defaults.timeout.count(),
          .backend = "auto",
          .init_method = "env://",
          .store = nullptr,
          .device_index = kNoDevice,
          .reserved_2 = 0,
          .nccl = nullptr};
}

rankrun_group_options GroupDefaults() {
  return {.size = sizeof(rankrun_group_options),
          .sort_ranks = 1,
          .use_local_synchronization = 0,
          .reserved = 0,
          .ranks = nullptr,
          .ranks_count = 0,
          .timeout_ms = RANKRUN_DEFAULT_TIMEOUT,
          .backend = nullptr,
          .description = nullptr,
          .nccl = nullptr};
}

rankrun_subgroup_options SubgroupDefaults() {
  return {.size = sizeof(rankrun_subgroup_options),
          .reserved = 0,
          .timeout_ms = RANKRUN_DEFAULT_TIMEOUT,
          .backend = nullptr,
          .description = nullptr,
          .nccl = nullptr};
}

void CheckReserved(uint32_t reserved) {
  if (reserved != 0) ThrowInvalid("options.reserved is not 0");
}

std::optional<rankrun::NcclOptions> Read(const rankrun_nccl_options* from) {
  if (from == nullptr) return std::nullopt;
  const rankrun_nccl_options given = OptionsOf(from, NcclDefaults());
  return rankrun::NcclOptions{.high_priority_stream = given.high_priority_stream != 0,
                              .min_ctas = given.min_ctas,
                              .max_ctas = given.max_ctas};
}

rankrun::InitOptions Read(const rankrun_init_options& from) {
  CheckReserved(from.reserved);
  if (from.reserved_2 != 0) ThrowInvalid("options.reserved_2 is not 0");
  std::optional<rankrun::Device> device;
  if (from.device_index != kNoDevice) {
    device = {.type = rankrun::DeviceType::kCuda, .index = from.device_index};
  }
  return {.timeout = std::chrono::milliseconds(from.timeout_ms),
          .backend = Text(from.backend, "options.backend"),
          .init_method = Text(from.init_method, "options.init_method"),
          .rank = from.rank,
          .world_size = from.world_size,
          .store = from.store == nullptr ? nullptr : from.store->store,
          .device = device,
          .nccl = Read(from.nccl).value_or(rankrun::NcclOptions())};
}

std::string TextOr(const char* text) { return text == nullptr ? "" : text; }

rankrun::GroupOptions Read(const rankrun_group_options& from) {
  CheckReserved(from.reserved);
  auto ranks = ListOf(from.ranks, from.ranks_count, "options.ranks");
  // NULL means all ranks; an empty list is an error of the program.
  if (from.ranks != nullptr && ranks.empty()) ThrowInvalid("options.ranks_count is 0");
  return {.ranks = {ranks.begin(), ranks.end()},
          .sort_ranks = from.sort_ranks != 0,
          .timeout = TimeoutOf(from.timeout_ms),
          .backend = TextOr(from.backend),
          .description = TextOr(from.description),
          .use_local_synchronization = from.use_local_synchronization != 0,
          .nccl = Read(from.nccl)};
}

rankrun::SubgroupOptions Read(const rankrun_subgroup_options& from) {
  CheckReserved(from.reserved);
  return {.timeout = TimeoutOf(from.timeout_ms),
          .backend = TextOr(from.backend),
          .description = TextOr(from.description),
          .nccl = Read(from.nccl)};
}

std::vector<std::vector<int>> SplitsOf(const int32_t* ranks, const size_t* sizes, size_t count) {
  std::vector<std::vector<int>> splits;
  for (size_t size : ListOf(sizes, count, "sizes")) {
    auto split = ListOf(ranks, size, "ranks");
    splits.emplace_back(split.begin(), split.end());
    ranks += size;
  }
  return splits;
}

}  // namespace

extern "C" {

rankrun_status rankrun_nccl_options_default(rankrun_nccl_options* options) {
  return Guarded([=] { WriteOptions(NcclDefaults(), options); });
}

rankrun_status rankrun_init_options_default(rankrun_init_options* options) {
  return Guarded([=] { WriteOptions(InitDefaults(), options); });
}

rankrun_status rankrun_init(const rankrun_init_options* options) {
  return Guarded([=] { rankrun::Init(Read(OptionsOf(options, InitDefaults()))); });
}

int rankrun_initialized(void) { return rankrun::Initialized() ? 1 : 0; }

rankrun_status rankrun_destroy(rankrun_group* group) {
  return Guarded([=] {
    if (group == nullptr) return rankrun::Destroy();
    rankrun::Destroy(GroupOf(group));
  });
}

rankrun_status rankrun_abort(rankrun_group* group, const char* reason) {
  return Guarded([=] { rankrun::Abort(GroupOf(group), TextOr(reason)); });
}

rankrun_status rankrun_world(rankrun_group** world) {
  return Guarded([=] {
    Clear(world, "world");
    *world = HandleOf(rankrun::World());
  });
}

rankrun_status rankrun_group_options_default(rankrun_group_options* options) {
  return Guarded([=] { WriteOptions(GroupDefaults(), options); });
}

rankrun_status rankrun_new_group(const rankrun_group_options* options, rankrun_group** group) {
  return Guarded([=] {
    Clear(group, "group");
    *group = HandleOf(rankrun::NewGroup(Read(OptionsOf(options, GroupDefaults()))));
  });
}

rankrun_status rankrun_subgroup_options_default(rankrun_subgroup_options* options) {
  return Guarded([=] { WriteOptions(SubgroupDefaults(), options); });
}

rankrun_status rankrun_split_group(rankrun_group* parent, const int32_t* ranks, const size_t* sizes,
                                   size_t count, const rankrun_subgroup_options* options,
                                   rankrun_group** group) {
  return Guarded([=] {
    Clear(group, "group");
    *group = HandleOf(rankrun::SplitGroup(GroupOf(parent), SplitsOf(ranks, sizes, count),
                                          Read(OptionsOf(options, SubgroupDefaults()))));
  });
}

rankrun_status rankrun_shrink_group(rankrun_group* parent, const int32_t* excluded, size_t count,
                                    const rankrun_subgroup_options* options,
                                    rankrun_group** group) {
  return Guarded([=] {
    Clear(group, "group");
    auto ranks = ListOf(excluded, count, "excluded");
    *group = HandleOf(rankrun::ShrinkGroup(GroupOf(parent), {ranks.begin(), ranks.end()},
                                           Read(OptionsOf(options, SubgroupDefaults()))));
  });
}

rankrun_status rankrun_context_init(const char* name, const rankrun_init_options* options,
                                    rankrun_context** context) {
  return Guarded([=] {
    Clear(context, "context");
    rankrun::InitOptions wanted = Read(OptionsOf(options, InitDefaults()));
    *context = new rankrun_context(Text(name, "name"), wanted);
  });
}

rankrun_status rankrun_context_world(const rankrun_context* context, rankrun_group** world) {
  return Guarded([=] {
    Clear(world, "world");
    *world = HandleOf(NotNull(context, "context").context.World());
  });
}

rankrun_status rankrun_context_new_group(rankrun_context* context,
                                         const rankrun_group_options* options,
                                         rankrun_group** group) {
  return Guarded([=] {
    Clear(group, "group");
    rankrun::GroupOptions wanted = Read(OptionsOf(options, GroupDefaults()));
    *group = HandleOf(NotNull(context, "context").context.NewGroup(wanted));
  });
}

void rankrun_context_release(rankrun_context* context) { delete context; }

int rankrun_group_rank(const rankrun_group* group) {
  return GuardedOr(-1, [=] { return GroupOf(group).group_rank(); });
}

int rankrun_world_size(const rankrun_group* group) {
  return GuardedOr(-1, [=] { return GroupOf(group).world_size(); });
}

int rankrun_global_rank(const rankrun_group* group) {
  return GuardedOr(-1, [=] { return GroupOf(group).global_rank(); });
}

int rankrun_is_member(const rankrun_group* group) {
  return GuardedOr(0, [=] { return GroupOf(group).is_member() ? 1 : 0; });
}

rankrun_status rankrun_group_ranks(const rankrun_group* group, const int** ranks, size_t* count) {
  return Guarded([=] {
    Clear(ranks, "ranks");
    NotNull(count, "count") = GroupOf(group).global_ranks().size();
    *ranks = GroupOf(group).global_ranks().data();
  });
}

rankrun_status rankrun_to_group_rank(const rankrun_group* group, int global_rank, int* group_rank) {
  return Guarded([=] {
    NotNull(group_rank, "group_rank") = GroupOf(group).GroupRankOf(GlobalRank{global_rank});
  });
}

rankrun_status rankrun_to_global_rank(const rankrun_group* group, int group_rank,
                                      int* global_rank) {
  return Guarded([=] {
    NotNull(global_rank, "global_rank") = GroupOf(group).GlobalRankOf(GroupRank{group_rank});
  });
}

const char* rankrun_group_name(const rankrun_group* group) {
  return GuardedOr<const char*>(nullptr, [=] { return GroupOf(group).name().c_str(); });
}

const char* rankrun_group_description(const rankrun_group* group) {
  return GuardedOr<const char*>(nullptr, [=] { return GroupOf(group).description().c_str(); });
}

const char* rankrun_group_backend(const rankrun_group* group) {
  return GuardedOr<const char*>(nullptr, [=] { return GroupOf(group).backend().c_str(); });
}

rankrun_status rankrun_group_state(const rankrun_group* group) {
  return Guarded([=] {
    const ProcessGroup& asked = GroupOf(group);
    if (asked.state() != rankrun::GroupState::kOk) {
      throw rankrun::DistBackendError(asked.broken_reason());
    }
  });
}

rankrun_status rankrun_register_backend(const rankrun_backend* backend) {
  return Guarded([=] { rankrun::RegisterBackend(NotNull(backend, "backend")); });
}

rankrun_status rankrun_register_device_backend(const rankrun_device_backend* backend) {
  return Guarded([=] { rankrun::RegisterBackend(NotNull(backend, "backend")); });
}

int rankrun_backend_available(const char* name) {
  return GuardedOr(0, [=] { return rankrun::BackendAvailable(Text(name, "name")) ? 1 : 0; });
}

rankrun_status rankrun_default_backend_for_device(const char* device, const char** backend) {
  return Guarded([=] {
    Clear(backend, "backend");
    const std::string name = rankrun::DefaultBackendForDevice(Text(device, "device"));
    *backend = name == rankrun::Backend::kNccl ? rankrun::Backend::kNccl : rankrun::Backend::kAuto;
  });
}

int rankrun_launched_by_agent(void) { return rankrun::LaunchedByAgent() ? 1 : 0; }

rankrun_saving* rankrun_saving_begin(void) {
  return GuardedOr<rankrun_saving*>(nullptr, [] { return new rankrun_saving; });
}

void rankrun_saving_end(rankrun_saving* saving) { delete saving; }

int rankrun_note_step(int64_t step) { return rankrun::NoteStep(step) ? 1 : 0; }

}  // extern "C"
