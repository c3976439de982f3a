#include "base/process/executable.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace rankrun {
namespace {

constexpr size_t kHeadBytes = 4096;

// Returns the head of a regular file; nothing if it is another kind of file or
// unreadable.
std::optional<std::string> ReadHead(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string head(kHeadBytes, '\0');
  ssize_t count = pread(file.get(), head.data(), head.size(), 0);
  if (count < 0) return std::nullopt;
  head.resize(static_cast<size_t>(count));
  return head;
}

// Returns the word after "#!", as the kernel reads it.
std::string ScriptInterpreter(std::string_view head) {
  std::string_view line = head.substr(2, head.find('\n') - 2);
  size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  line.remove_prefix(begin);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

// Returns a number of an ELF file, in the file's byte order.
template <typename Number>
Number Get(std::string_view head, size_t offset) {
  if (offset > head.size() || head.size() - offset < sizeof(Number)) return 0;
  char bytes[sizeof(Number)];
  std::memcpy(bytes, head.data() + offset, sizeof bytes);
  bool little = head[EI_DATA] != ELFDATA2MSB;
  if (little != (std::endian::native == std::endian::little))
    std::reverse(bytes, bytes + sizeof bytes);
  return std::bit_cast<Number>(bytes);
}

std::string MachineName(uint16_t machine, bool is_64, bool little) {
  switch (machine) {
    case EM_X86_64:
      return is_64 ? "x86_64" : "x86_64 (x32)";
    case EM_386:
      return "i386";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "arm";
    case EM_PPC64:
      return little ? "ppc64le" : "ppc64";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return is_64 ? "riscv64" : "riscv32";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

// Returns the content of PT_INTERP if it lies in the head.
template <typename Header, typename Segment>
std::string ElfInterpreter(std::string_view head) {
  auto table = Get<decltype(Header::e_phoff)>(head, offsetof(Header, e_phoff));
  auto count = Get<uint16_t>(head, offsetof(Header, e_phnum));
  for (uint16_t i = 0; i < count; ++i) {
    size_t at = table + i * sizeof(Segment);
    if (Get<uint32_t>(head, at + offsetof(Segment, p_type)) != PT_INTERP) continue;
    size_t offset = Get<decltype(Segment::p_offset)>(head, at + offsetof(Segment, p_offset));
    if (offset >= head.size()) return "";
    return std::string(head.data() + offset, strnlen(head.data() + offset, head.size() - offset));
  }
  return "";
}

Executable ReadElf(std::string_view head) {
  bool is_64 = head[EI_CLASS] == ELFCLASS64;
  uint16_t machine = Get<uint16_t>(head, offsetof(Elf64_Ehdr, e_machine));
  return {.kind = Executable::Kind::kElf,
          .interpreter = is_64 ? ElfInterpreter<Elf64_Ehdr, Elf64_Phdr>(head)
                               : ElfInterpreter<Elf32_Ehdr, Elf32_Phdr>(head),
          .machine = MachineName(machine, is_64, head[EI_DATA] != ELFDATA2MSB)};
}

bool IsMacOs(std::string_view head) {
  constexpr std::string_view kMagics[] = {"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe",
                                          "\xca\xfe\xba\xbe"};
  return std::ranges::any_of(kMagics,
                             [&](std::string_view magic) { return head.starts_with(magic); });
}

Executable OfKind(Executable::Kind kind) {
  return {.kind = kind, .interpreter = {}, .machine = {}};
}

}  // namespace

Executable ReadExecutable(const std::string& path) {
  auto head = ReadHead(path);
  if (!head) return OfKind(Executable::Kind::kUnreadable);
  if (head->empty()) return OfKind(Executable::Kind::kEmpty);
  if (head->starts_with("#!")) {
    return {
        .kind = Executable::Kind::kScript, .interpreter = ScriptInterpreter(*head), .machine = {}};
  }
  if (head->starts_with(ELFMAG) && head->size() > EI_NIDENT) return ReadElf(*head);
  if (head->starts_with("MZ")) return OfKind(Executable::Kind::kWindows);
  if (IsMacOs(*head)) return OfKind(Executable::Kind::kMacOs);
  bool text = head->find('\0') == std::string::npos;
  return OfKind(text ? Executable::Kind::kText : Executable::Kind::kOther);
}

std::string OwnMachine() {
  auto head = ReadHead("/proc/self/exe");
  return head && head->size() > EI_NIDENT ? ReadElf(*head).machine : "unknown";
}

}  // namespace rankrun
