#include "comm/nccl/unique_id.h"

#include <cstring>

#include "base/roll_call.h"
#include "comm/nccl/nvidia.h"

namespace rankrun::comm::nccl {

Result<ncclUniqueId> PublishId(store::Store& store, const std::string& key) {
  ncclUniqueId id{};
  ncclResult_t status = Nvidia().ncclGetUniqueId(&id);
  std::string value(id.internal, sizeof id.internal);
  if (status != ncclSuccess)
    value = std::string("ncclGetUniqueId: ") + Nvidia().ncclGetErrorString(status);
  if (auto ok = store.Set(key, value); !ok) return ok.error();
  if (status != ncclSuccess) return Error{ErrorCode::kSystem, value};
  return id;
}

Result<ncclUniqueId> IdIn(const std::string& value, int from) {
  ncclUniqueId id{};
  if (value.size() != sizeof id.internal) {
    return Error{ErrorCode::kSystem, RanksInWords({from}) + ": " + value};
  }
  std::memcpy(id.internal, value.data(), sizeof id.internal);
  return id;
}

}  // namespace rankrun::comm::nccl
