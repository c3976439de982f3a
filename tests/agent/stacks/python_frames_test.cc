#include "agent/stacks/helper/python_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Memory of an imagined process. Objects lie 4096 bytes apart.
class FakeMemory : public RemoteMemory {
 public:
  size_t ReadSome(uint64_t address, std::span<char> bytes) const override {
    size_t count = 0;
    for (; count < bytes.size() && address + count < bytes_.size(); ++count) {
      bytes[count] = bytes_[address + count];
    }
    return count;
  }

  uint64_t NewObject() {
    const uint64_t address = bytes_.size();
    bytes_.resize(bytes_.size() + 4096, '\0');
    return address;
  }
  template <typename Value>
  void Put(uint64_t address, Value value) {
    std::memcpy(bytes_.data() + address, &value, sizeof value);
  }
  void PutBytes(uint64_t address, const std::string& bytes) {
    bytes_.replace(address, bytes.size(), bytes);
  }
  void Damage(uint32_t seed) {
    for (int i = 0; i < 200; ++i) {
      seed = seed * 1664525 + 1013904223;
      const size_t at = (seed >> 8) % (bytes_.size() / 4096 * 256);
      bytes_[at / 256 * 4096 + at % 256] = static_cast<char>(seed >> 3);
    }
  }

 private:
  std::string bytes_ = std::string(4096, '\0');  // nothing at address 0
};

// One thread with the frames inner <- outer, of any version.
struct Process {
  explicit Process(int minor) : layout(*PythonLayoutOf(minor)) {
    const uint64_t interpreter = memory.NewObject();
    memory.Put(runtime + layout.runtime_interpreters, interpreter);
    thread = memory.NewObject();
    memory.NewObject();  // room behind: 3.13 has large offsets
    memory.Put(interpreter + layout.interpreter_threads, thread);
    memory.Put(thread + layout.thread_id, uint64_t{0x7f00});
    if (layout.thread_native_id != kNoField) {
      memory.Put(thread + layout.thread_native_id, uint64_t{4711});
    }
    outer = Frame(Code("main", 20), 0);
    inner = Frame(Code("load", 30), outer);
    uint64_t first = inner;
    if (layout.cframe_frame != kNoField) {
      first = memory.NewObject();
      memory.Put(first + layout.cframe_frame, inner);
    }
    memory.Put(thread + layout.thread_frame, first);
  }

  uint64_t Text(const std::string& text) {
    const uint64_t address = memory.NewObject();
    memory.Put(address + layout.text_length, uint64_t{text.size()});
    memory.Put(address + layout.text_state, uint32_t{0x60 | 1 << 2});  // compact, ASCII
    memory.PutBytes(address + layout.ascii_size, text);
    return address;
  }

  uint64_t Code(const std::string& name, int line, const std::string& file = "/home/train.py") {
    const uint64_t code = memory.NewObject();
    const uint64_t lines = memory.NewObject();
    memory.Put(code + layout.code_name, Text(name));
    memory.Put(code + layout.code_file, Text(file));
    memory.Put(code + layout.code_first_line, line);
    memory.Put(code + layout.code_lines, lines);
    std::string table = std::string("\0\1", 2);  // line + 1
    if (layout.line_table == PythonLineTable::kLinetable) table = "\x40\1";
    if (layout.line_table == PythonLineTable::kLocations) table = std::string("\xdf\0\0", 3);
    memory.Put(lines + layout.bytes_size, uint64_t{table.size()});
    memory.PutBytes(lines + layout.bytes_value, table);
    return code;
  }

  uint64_t Frame(uint64_t code, uint64_t previous) {
    const uint64_t frame = memory.NewObject();
    memory.Put(frame + layout.frame_code, code);
    memory.Put(frame + layout.frame_previous, previous);
    if (layout.code_instructions != kNoField) {
      memory.Put(frame + layout.frame_instruction, code + layout.code_instructions + 4);
    } else {
      memory.Put(frame + layout.frame_instruction, 4);
    }
    return frame;
  }

  std::vector<PythonThread> Read() const {
    return PythonReader(memory, layout, [] { return false; }).Read(runtime);
  }

  FakeMemory memory;
  const PythonLayout layout;
  const uint64_t runtime = memory.NewObject();
  const uint64_t room1 = memory.NewObject();
  uint64_t thread = 0;
  uint64_t outer = 0;
  uint64_t inner = 0;
};

struct PythonFramesTest : ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, PythonFramesTest, ::testing::Values(8, 9, 10, 11, 12));

const StackFrame kLoad{.function = "load", .file = "/home/train.py", .line = 31, .module = ""};
const StackFrame kMain{.function = "main", .file = "/home/train.py", .line = 21, .module = ""};

TEST_P(PythonFramesTest, FramesAreReadInnermostFirst) {
  const Process process(GetParam());
  auto threads = process.Read();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].id, 0x7f00u);
  EXPECT_EQ(threads[0].native_id, GetParam() >= 11 ? 4711 : 0);
  EXPECT_THAT(threads[0].frames, ElementsAre(kLoad, kMain));
}

TEST_P(PythonFramesTest, ALoopOfFramesEnds) {
  Process process(GetParam());
  process.memory.Put(process.outer + process.layout.frame_previous, process.inner);
  EXPECT_THAT(process.Read()[0].frames, ElementsAre(kLoad, kMain));
}

TEST_P(PythonFramesTest, ALoopOfThreadsEnds) {
  Process process(GetParam());
  process.memory.Put(process.thread + process.layout.thread_next, process.thread);
  EXPECT_EQ(process.Read().size(), kMaxStackThreads);
}

TEST_P(PythonFramesTest, DamagedMemoryIsHarmless) {
  for (uint32_t seed = 1; seed < 300; ++seed) {
    Process process(GetParam());
    process.memory.Damage(seed);
    for (const PythonThread& thread : process.Read()) {
      EXPECT_LE(thread.frames.size(), kMaxStackFrames);
    }
  }
}

TEST_P(PythonFramesTest, ReadingEndsWhenItIsLate) {
  const Process process(GetParam());
  PythonReader reader(process.memory, process.layout, [] { return true; });
  EXPECT_THAT(reader.Read(process.runtime), IsEmpty());
}

TEST(PythonFramesLimitTest, DeepRecursionIsCut) {
  Process process(11);
  uint64_t frame = process.inner;
  const uint64_t code = process.Code("again", 1);
  for (int i = 0; i < 500; ++i) frame = process.Frame(code, frame);
  const uint64_t cframe = process.memory.NewObject();
  process.memory.Put(cframe + process.layout.cframe_frame, frame);
  process.memory.Put(process.thread + process.layout.thread_frame, cframe);
  EXPECT_EQ(process.Read()[0].frames.size(), kMaxStackFrames);
}

TEST(PythonFramesLimitTest, FramesOfTheInterpreterItselfAreLeftOut) {
  Process process(12);
  process.memory.Put<unsigned char>(process.inner + process.layout.frame_owner, 3);
  EXPECT_THAT(process.Read()[0].frames, ElementsAre(kMain));
}

TEST(PythonTextTest, WidthsOfCharactersBecomeUtf8) {
  EXPECT_EQ(Utf8Of(std::string("na\xefve"), 1), "na\xc3\xafve");
  EXPECT_EQ(Utf8Of(std::string("\x42\x20", 2), 2), "\xe2\x81\x82");
  EXPECT_EQ(Utf8Of(std::string("\x00\xf6\x01\x00", 4), 4), "\xf0\x9f\x98\x80");
  EXPECT_EQ(Utf8Of(std::string("\xff\xff\xff\xff", 4), 4), "?");
  EXPECT_LE(Utf8Of(std::string(10'000, '\xef'), 1).size(), kMaxStackText);
}

TEST(PythonFramesTest, TheAddressOfAStoreIsThatOfItsArguments) {
  for (int minor = 8; minor <= 13; ++minor) {
    Process process(minor);
    const uint64_t store = process.Frame(
        process.Code("_create_c10d_store", 162, "/venv/torch/distributed/rendezvous.py"), 0);
    const uint64_t port = process.memory.NewObject();
    process.memory.Put(port + 24, uint32_t{12355});
    process.memory.Put(store + process.layout.frame_locals, process.Text("127.0.0.1"));
    process.memory.Put(store + process.layout.frame_locals + 8, port);
    process.memory.Put(process.inner + process.layout.frame_previous, store);
    const auto threads = process.Read();
    ASSERT_EQ(threads.size(), 1U);
    ASSERT_EQ(threads[0].frames.size(), 2U);
    EXPECT_EQ(threads[0].frames[0].address, "");
    EXPECT_EQ(threads[0].frames[1].address, "127.0.0.1:12355") << minor;
    process.memory.Put(port + 24, uint32_t{70'000});
    EXPECT_EQ(process.Read()[0].frames[1].address, "") << "no port";
  }
}

}  // namespace
}  // namespace rankrun::agent
