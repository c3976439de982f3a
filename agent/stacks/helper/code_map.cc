#include "agent/stacks/helper/code_map.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "agent/stacks/helper/python_layout.h"
#include "agent/stacks/helper/remote_memory.h"

namespace rankrun::agent {
namespace {

std::string Demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result.substr(0, kMaxStackText);
}

// Returns the value of a symbol that a section of symbols defines.
std::optional<uint64_t> FindIn(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                               const char* name) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return std::nullopt;
  const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
    const char* found = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (found != nullptr && std::strcmp(found, name) == 0) return symbol.st_value;
  }
  return std::nullopt;
}

std::optional<uint64_t> FindSymbol(Elf* elf, const char* name) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) continue;
    if (auto found = FindIn(elf, section, header, name)) return found;
  }
  return std::nullopt;
}

std::string PathOf(Dwfl_Module* module) {
  const char* main_file = nullptr;
  const char* name =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &main_file, nullptr);
  const char* path = main_file != nullptr ? main_file : name;
  return path == nullptr ? "" : path;
}

// Puts the CodeMap::Python of a module at `result`, if the module is one.
int CheckForPython(Dwfl_Module* module, void**, const char* name, Dwarf_Addr, void* result) {
  const auto minor = PythonMinorOf(name);
  if (!minor) return DWARF_CB_OK;
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module, &bias);
  const auto symbol = elf == nullptr ? std::nullopt : FindSymbol(elf, "_PyRuntime");
  if (!symbol) return DWARF_CB_OK;
  *static_cast<std::optional<CodeMap::Python>*>(result) = {
      .module = name, .runtime = *symbol + bias, .minor = *minor};
  return DWARF_CB_ABORT;
}

}  // namespace

// Stopped threads as libdw sees them.
struct CodeMap::Memory {
  const Snapshot& snapshot;
  ProcessMemory rest;  // outside the copied stacks
  size_t next = 0;

  bool Read(uint64_t address, uint64_t* word) const {
    for (const ThreadSnapshot& thread : snapshot.threads) {
      const uint64_t offset = address - thread.stack_begin;
      if (offset >= thread.stack.size() || thread.stack.size() - offset < sizeof *word) continue;
      std::memcpy(word, thread.stack.data() + offset, sizeof *word);
      return true;
    }
    const auto value = rest.Get<uint64_t>(address);
    if (value) *word = *value;
    return value.has_value();
  }
};

struct CodeMap::Callbacks {
  static pid_t NextThread(::Dwfl*, void* argument, void** thread) {
    Memory& memory = *static_cast<Memory*>(argument);
    const auto& threads = memory.snapshot.threads;
    if (*thread == nullptr) memory.next = 0;
    if (memory.next >= threads.size()) return 0;
    const ThreadSnapshot& found = threads[memory.next++];
    *thread = const_cast<ThreadSnapshot*>(&found);
    return found.tid;
  }

  static bool GetThread(::Dwfl*, pid_t tid, void* argument, void** thread) {
    const auto& threads = static_cast<Memory*>(argument)->snapshot.threads;
    auto found = std::ranges::find(threads, tid, &ThreadSnapshot::tid);
    if (found == threads.end()) return false;
    *thread = const_cast<ThreadSnapshot*>(&*found);
    return true;
  }

  static bool ReadWord(::Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* argument) {
    return static_cast<const Memory*>(argument)->Read(address, word);
  }

  static bool SetRegisters(Dwfl_Thread* thread, void* argument) {
    const auto& known = *static_cast<const ThreadSnapshot*>(argument);
    if (known.registers.empty()) return false;
    dwfl_thread_state_register_pc(thread, known.pc);
    return dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(known.registers.size()),
                                       known.registers.data());
  }

  static int AddFrame(::Dwfl_Frame* frame, void* addresses) {
    auto& found = *static_cast<std::vector<uint64_t>*>(addresses);
    Dwarf_Addr pc = 0;
    bool is_exact = false;
    if (!dwfl_frame_pc(frame, &pc, &is_exact)) return DWARF_CB_ABORT;
    // A return address may be the first one of the next function.
    found.push_back(is_exact || pc == 0 ? pc : pc - 1);
    return found.size() == kMaxStackFrames ? DWARF_CB_ABORT : DWARF_CB_OK;
  }
};

CodeMap::CodeMap(pid_t pid, ::Dwfl* dwfl) : pid_(pid), dwfl_(dwfl) {}

CodeMap::~CodeMap() { dwfl_end(dwfl_); }

Result<std::unique_ptr<CodeMap>> CodeMap::Open(pid_t pid) {
  static char* debug_path = nullptr;  // the standard one
  static const Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                                        .find_debuginfo = dwfl_standard_find_debuginfo,
                                        .section_address = nullptr,
                                        .debuginfo_path = &debug_path};
  std::unique_ptr<CodeMap> map(new CodeMap(pid, dwfl_begin(&callbacks)));
  const int status = dwfl_linux_proc_report(map->dwfl_, pid);
  if (status == EACCES || status == EPERM) return Error{ErrorCode::kSystem, ""};
  if (status != 0 || dwfl_report_end(map->dwfl_, nullptr, nullptr) != 0) {
    return Error{ErrorCode::kSystem,
                 "its mapped files are not readable: " +
                     std::string(status > 0 ? std::strerror(status) : dwfl_errmsg(dwfl_errno()))};
  }
  return map;
}

std::optional<CodeMap::Python> CodeMap::FindPython() const {
  std::optional<Python> found;
  dwfl_getmodules(dwfl_, CheckForPython, &found, 0);
  return found;
}

std::vector<std::vector<uint64_t>> CodeMap::Unwind(const Snapshot& snapshot) {
  static const Dwfl_Thread_Callbacks callbacks{.next_thread = Callbacks::NextThread,
                                               .get_thread = Callbacks::GetThread,
                                               .memory_read = Callbacks::ReadWord,
                                               .set_initial_registers = Callbacks::SetRegisters,
                                               .detach = nullptr,
                                               .thread_detach = nullptr};
  memory_ = std::make_unique<Memory>(Memory{.snapshot = snapshot, .rest = ProcessMemory(pid_)});
  std::vector<std::vector<uint64_t>> stacks(snapshot.threads.size());
  const bool is_attached = dwfl_attach_state(dwfl_, nullptr, pid_, &callbacks, memory_.get());
  for (size_t i = 0; i < stacks.size(); ++i) {
    if (is_attached) {
      dwfl_getthread_frames(dwfl_, snapshot.threads[i].tid, Callbacks::AddFrame, &stacks[i]);
    }
    if (stacks[i].empty()) stacks[i].push_back(snapshot.threads[i].pc);
  }
  return stacks;
}

StackFrame CodeMap::NameOf(uint64_t address) {
  auto [found, is_new] = names_.try_emplace(address);
  StackFrame& frame = found->second;
  if (!is_new) return frame;
  Dwfl_Module* module = dwfl_addrmodule(dwfl_, address);
  if (module == nullptr) return frame;
  frame.module = PathOf(module).substr(0, kMaxStackText);
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* name =
      dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name == nullptr) return frame;
  frame.function = Demangled(name);
  frame.function.resize(std::min(frame.function.size(), frame.function.find('@')));  // version
  return frame;
}

void CodeMap::AddLine(uint64_t address, StackFrame& frame) {
  Dwfl_Module* module = dwfl_addrmodule(dwfl_, address);
  Dwfl_Line* line = module == nullptr ? nullptr : dwfl_module_getsrc(module, address);
  int number = 0;
  const char* file =
      line == nullptr ? nullptr : dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (file == nullptr) return;
  frame.file = std::string(file).substr(0, kMaxStackText);
  frame.line = number;
}

}  // namespace rankrun::agent
