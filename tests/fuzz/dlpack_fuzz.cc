// Tensors of other frameworks.

#include <dlpack/dlpack.h>
#include <fuzzer/FuzzedDataProvider.h>

#include <rankrun/dist_error.h>
#include <rankrun/dlpack.h>

#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  FuzzedDataProvider choices(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  std::vector<int64_t> shape(8), strides(8);
  for (auto* list : {&shape, &strides}) {
    for (int64_t& number : *list) {
      number = choices.ConsumeBool() ? choices.ConsumeIntegralInRange<int64_t>(-2, 8)
                                     : choices.ConsumeIntegral<int64_t>();
    }
  }
  char memory[64];
  DLTensor tensor{};
  tensor.data = choices.ConsumeBool() ? memory : nullptr;
  tensor.device = {.device_type = static_cast<DLDeviceType>(choices.ConsumeIntegralInRange(0, 20)),
                   .device_id = choices.ConsumeIntegral<int32_t>()};
  tensor.ndim = choices.ConsumeIntegralInRange<int32_t>(-2, 8);
  tensor.dtype = {.code = choices.ConsumeIntegral<uint8_t>(),
                  .bits = choices.ConsumeIntegral<uint8_t>(),
                  .lanes = choices.ConsumeIntegral<uint16_t>()};
  tensor.shape = choices.ConsumeBool() ? shape.data() : nullptr;
  tensor.strides = choices.ConsumeBool() ? strides.data() : nullptr;
  tensor.byte_offset = choices.ConsumeIntegral<uint64_t>();
  if (tensor.ndim > 0 && tensor.shape == nullptr) tensor.ndim = 0;  // DLPack requires a shape
  try {
    Tensor view = FromDLTensor(&tensor);
    if (view.row == 0 || view.count % view.row != 0) return "a tensor has a part of a row";
    DLManagedTensor* managed = ToDLPack(view, nullptr);
    size_t count = 1;
    for (int i = 0; i < managed->dl_tensor.ndim; ++i) {
      count *= static_cast<size_t>(managed->dl_tensor.shape[i]);
    }
    managed->deleter(managed);
    if (count != view.count) return "a tensor has another size on the way back";
  } catch (const DistError&) {
  }
  return "";
}

}  // namespace rankrun::test
