#include "comm/training/model_text.h"

#include <gmock/gmock.h>

namespace rankrun::comm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

float values[8] = {};

Parameter Of(const std::string& name, size_t count, DType dtype = DType::kFloat32) {
  return {name, Tensor(values, dtype, count), Tensor(values, dtype, count)};
}

std::string TextOf(const std::vector<Parameter>& parameters,
                   const DataParallelOptions& options = {}) {
  auto text = ModelText(parameters, options);
  return text ? *text : ModelRefusal(text.error());
}

// Returns the error for rank 0 with the first text, and ranks 1 and 2 with the others.
std::string Compared(const std::string& first, const std::string& second,
                     const std::string& third) {
  auto ok = CompareModelTexts({0, 1, 2}, {first, second, third});
  if (ok) return "equal";
  return (ok.error().code == ErrorCode::kMismatch ? "mismatch: " : "error: ") + ok.error().message;
}

TEST(ModelTextTest, TheFirstDifferenceIsNamed) {
  const std::string two = TextOf({Of("a", 2), Of("b", 3)});
  const std::string begin = "mismatch: the ranks have different models: ";
  EXPECT_EQ(Compared(two, two, two), "equal");
  EXPECT_EQ(Compared(two, TextOf({Of("a", 2)}), two),
            begin + "ranks 0, 2 have 2 parameters, rank 1 has 1 parameter");
  EXPECT_EQ(Compared(two, two, TextOf({Of("a", 2), Of("c", 3)})),
            begin +
                "ranks 0, 1 have parameter 1 (\"b\") with 3 elements of float32, rank 2 has "
                "parameter 1 (\"c\") with 3 elements of float32");
  EXPECT_THAT(Compared(TextOf({Of("a", 1), Of("b", 3)}), two, two),
              StartsWith(begin + "rank 0 has parameter 0 (\"a\") with 1 element of float32, "));
  EXPECT_THAT(Compared(two, two, TextOf({Of("a", 2), Of("b", 3, DType::kInt32)})),
              HasSubstr("rank 2 has parameter 1 (\"b\") with 3 elements of int32"));
  EXPECT_THAT(Compared(two, TextOf({Of("a", 2), Of("bc", 3)}), two), HasSubstr("(\"bc\")"));
}

TEST(ModelTextTest, OptionsAndBuffersAreCompared) {
  const std::vector<Parameter> one{Of("a", 2)};
  const std::string text = TextOf(one);
  EXPECT_THAT(Compared(text, text, TextOf(one, {.find_unused_parameters = true})),
              HasSubstr("rank 2 has find_unused_parameters = true"));
  EXPECT_THAT(Compared(text, text, TextOf(one, {.bucket_cap_bytes = 1})),
              HasSubstr("rank 2 has bucket_cap_bytes = 1"));
  EXPECT_THAT(Compared(text, text, TextOf(one, {.first_bucket_cap_bytes = 1})),
              HasSubstr("rank 2 has first_bucket_cap_bytes = 1"));
  EXPECT_THAT(Compared(text, text, TextOf(one, {.buffers = {{"mean", Of("", 2).value}}})),
              HasSubstr("rank 2 has 1 buffer"));
  EXPECT_EQ(Compared(text, text, TextOf(one, {.module_name = "other"})), "equal");
}

TEST(ModelTextTest, ARankMayRefuse) {
  const std::string text = TextOf({Of("a", 2)});
  const std::string none = ModelRefusal({ErrorCode::kInvalid, "no model"});
  EXPECT_EQ(Compared(text, none, text), "error: rank 1 refused it: no model");
}

TEST(ModelTextTest, BadArgumentsAreErrors) {
  auto error = [](const std::vector<Parameter>& parameters,
                  const DataParallelOptions& options = {}) {
    auto text = ModelText(parameters, options);
    return text ? std::string("no error") : text.error().message;
  };
  EXPECT_EQ(error({}), "there is no parameter: want at least one");
  EXPECT_EQ(error({Of("a", 2), Of("a", 2)}),
            "parameter 1 (\"a\") has the name of an earlier one: want different names");
  EXPECT_EQ(error({Of("a", 2, DType::kBool)}),
            "parameter 0 (\"a\") is of bool, which has no average: want another type");
  EXPECT_EQ(error({{"a", Of("", 2).value, Of("", 1).value}}),
            "parameter 0 (\"a\") has 2 elements of float32, its gradient 1 element of float32: "
            "want the same");
  EXPECT_EQ(error({{"a", Tensor(nullptr, DType::kFloat32, 1), Of("", 1).value}}),
            "parameter 0 (\"a\") has no memory");
  EXPECT_EQ(error({Of(std::string("a\0b", 3), 2)}).find("parameter 0"), 0U);
  EXPECT_THAT(error({Of("a", 2)}, {.bucket_cap_bytes = 0}), HasSubstr("want bucket_cap_bytes"));
  Tensor on_gpu = Of("", 2).value;
  on_gpu.device.type = DeviceType::kCuda;
  EXPECT_EQ(error({{"a", Of("", 2).value, on_gpu}}),
            "the gradient of parameter 0 (\"a\") is in GPU memory: want CPU memory");
  EXPECT_EQ(error({Of("a", 2)}, {.buffers = {{"mean", on_gpu}}}),
            "buffer 0 (\"mean\") is in GPU memory: want CPU memory");
}

}  // namespace
}  // namespace rankrun::comm
