#include "base/process/exec_error.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cstring>

#include "base/process/executable.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct ExecErrorTest : testing::Test {
  // Returns the cause in SpawnProcess's error, without "start <file>: ".
  std::string Cause(const std::string& file, std::vector<std::string> arguments = {"program"},
                    std::vector<std::string> environment = {}) {
    SpawnSpec spec;
    spec.file = file;
    spec.arguments = std::move(arguments);
    spec.environment = std::move(environment);
    auto process = SpawnProcess(spec);
    if (process) {
      test::WaitForExit(process->pid);
      return "(it started)";
    }
    code = process.error().code;
    std::string start = "start " + file + ": ";
    EXPECT_THAT(process.error().message, StartsWith(start));
    return process.error().message.substr(start.size());
  }

  std::string Program(std::string_view content) { return folder.Write("program", content, 0755); }

  // Writes a copy of a real program with another machine, class or loader.
  std::string ChangedProgram(const std::function<void(std::string&)>& change) {
    std::string bytes = test::ReadWholeFile("/bin/true");
    change(bytes);
    return Program(bytes);
  }

  test::TempFolder folder;
  ErrorCode code = ErrorCode::kCancelled;
};

TEST_F(ExecErrorTest, AMissingFile) {
  EXPECT_EQ(Cause(folder.Path("gone")), "no such file");
  EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_EQ(Cause(folder.Path("a/b/gone")), "no such file: there is no folder " + folder.Path("a"));
  EXPECT_EQ(Cause("gone"), "no such file");
}

TEST_F(ExecErrorTest, ALinkToNothing) {
  std::filesystem::create_symlink("/no/target", folder.Path("link"));
  EXPECT_EQ(Cause(folder.Path("link")), "it is a link to /no/target, which does not exist");
  EXPECT_EQ(code, ErrorCode::kNotFound);
}

TEST_F(ExecErrorTest, AMissingInterpreterIsNamed) {
  std::string file = Program("#! /no/python -u\nprint()\n");
  EXPECT_EQ(Cause(file), "the first line of " + file +
                             " names the interpreter /no/python, which does not exist");
  EXPECT_EQ(code, ErrorCode::kNotFound);
}

TEST_F(ExecErrorTest, AMissingInterpreterOfAnInterpreterIsNamed) {
  std::string inner = folder.Write("inner", "#!/no/python\n", 0755);
  std::string file = Program("#!" + inner + "\n");
  EXPECT_EQ(Cause(file), "the first line of " + inner +
                             " names the interpreter /no/python, which does not exist");
}

TEST_F(ExecErrorTest, WindowsLineEndsAreRecognised) {
  std::string file = Program("#!/bin/sh\r\necho\r\n");
  EXPECT_EQ(Cause(file),
            "the first line of " + file + " ends in a carriage return: give it Unix line ends");
}

TEST_F(ExecErrorTest, AMissingLoaderIsNamed) {
  std::string loader = ReadExecutable("/bin/true").interpreter;
  ASSERT_THAT(loader, HasSubstr("/ld-"));
  std::string file = ChangedProgram([&](std::string& bytes) {
    bytes.replace(bytes.find(loader), loader.size(),
                  std::string(loader.size() - 1, 'x').insert(0, "/"));
  });
  EXPECT_EQ(Cause(file), file + " needs the loader /" + std::string(loader.size() - 1, 'x') +
                             ", which does not exist: it was built for another system");
  EXPECT_EQ(code, ErrorCode::kNotFound);
}

TEST_F(ExecErrorTest, AProgramOfAnotherMachine) {
  uint16_t other = OwnMachine() == "s390x" ? EM_PPC64 : EM_S390;
  std::string file = ChangedProgram([&](std::string& bytes) {
    std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &other, sizeof other);
  });
  std::string name = ReadExecutable(file).machine;
  EXPECT_NE(name, OwnMachine());
  EXPECT_EQ(Cause(file), "it is a program for " + name + ", this machine is " + OwnMachine());
  EXPECT_EQ(code, ErrorCode::kSystem);
  std::string script = folder.Write("script", "#!" + file + "\n", 0755);
  EXPECT_EQ(Cause(script), "its interpreter " + file + " is a program for " + name +
                               ", this machine is " + OwnMachine());
}

TEST_F(ExecErrorTest, MachinesHaveTheNamesOfUname) {
  struct Row {
    uint16_t machine;
    unsigned char elf_class;
    const char* name;
  };
  constexpr Row kRows[] = {
      {EM_X86_64, ELFCLASS64, "x86_64"}, {EM_AARCH64, ELFCLASS64, "aarch64"},
      {EM_386, ELFCLASS32, "i386"},      {EM_ARM, ELFCLASS32, "arm"},
      {EM_PPC64, ELFCLASS64, "ppc64le"}, {EM_RISCV, ELFCLASS64, "riscv64"},
      {EM_S390, ELFCLASS64, "s390x"},    {12345, ELFCLASS64, "ELF machine 12345"}};
  for (const Row& row : kRows) {
    std::string bytes(64, '\0');
    bytes.replace(0, 4, ELFMAG);
    bytes[EI_CLASS] = static_cast<char>(row.elf_class);
    bytes[EI_DATA] = ELFDATA2LSB;
    bytes[18] = static_cast<char>(row.machine & 0xff);
    bytes[19] = static_cast<char>(row.machine >> 8);
    EXPECT_EQ(ReadExecutable(Program(bytes)).machine, row.name);
  }
}

TEST_F(ExecErrorTest, AFileThatIsNotAProgram) {
  EXPECT_EQ(Cause(Program("")), "it is empty");
  EXPECT_EQ(Cause(Program("echo hello\n")),
            "it is a script whose first line is not #! and an interpreter");
  EXPECT_EQ(Cause(Program("#!\necho\n")),
            "it is a script whose first line is not #! and an interpreter");
  EXPECT_EQ(Cause(Program(std::string("MZ\0\x90", 4))), "it is a program for Windows");
  EXPECT_EQ(Cause(Program("\xcf\xfa\xed\xfe....")), "it is a program for macOS");
  EXPECT_EQ(Cause(Program(std::string("\0\1\2", 3))),
            "it is not a program: neither ELF nor a script");
  EXPECT_EQ(Cause(ChangedProgram([](std::string& bytes) { bytes.resize(80); })),
            "it is an ELF file that cannot be executed: damaged, or an object file");
  EXPECT_EQ(code, ErrorCode::kSystem);
}

TEST_F(ExecErrorTest, AFileThatMayNotBeExecuted) {
  EXPECT_EQ(Cause(folder.Write("plain", "#!/bin/sh\n", 0644)),
            "no permission to execute it (chmod +x)");
  EXPECT_EQ(Cause(folder.path()), "it is a folder");
  EXPECT_EQ(Cause("/dev/null"), "it is not a regular file");
  std::string interpreter = folder.Write("interpreter", "#!/bin/sh\n", 0644);
  EXPECT_EQ(Cause(Program("#!" + interpreter + "\n")),
            "its interpreter " + interpreter + ": no permission to execute it (chmod +x)");
  EXPECT_EQ(code, ErrorCode::kSystem);
}

// Runs in a process that is not root, because root may enter any folder.
TEST_F(ExecErrorTest, AFolderThatMayNotBeEnteredIsNamed) {
  std::string file = folder.Write("closed/program", "#!/bin/sh\n", 0755);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder.Path("closed").c_str(), 0600), 0);
  pid_t child = test::Fork([&] {
    constexpr uid_t kNobody = 65534;
    if (getuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 2;
    return Cause(file) == "no permission to enter the folder " + folder.Path("closed") ? 0 : 1;
  });
  EXPECT_EQ(test::WaitForExit(child), ProcessExit{});
  chmod(folder.Path("closed").c_str(), 0700);
}

TEST_F(ExecErrorTest, AFileSystemMountedNoexecIsNamed) {
  const char* source = "tmpfs";
  if (mount(source, folder.path().c_str(), source, MS_NOEXEC, nullptr) != 0) {
    GTEST_SKIP() << "no permission to mount";
  }
  EXPECT_EQ(Cause(Program("#!/bin/sh\n")), "its file system is mounted noexec");
  EXPECT_EQ(umount(folder.path().c_str()), 0);
}

TEST_F(ExecErrorTest, APartOfThePathThatIsNotAFolderIsNamed) {
  std::string file = folder.Write("plain", "");
  EXPECT_EQ(Cause(file + "/program"), file + " is not a folder");
}

TEST_F(ExecErrorTest, AFileThatIsBeingWritten) {
  std::string file = Program("#!/bin/sh\n");
  std::filesystem::copy_file("/bin/true", file, std::filesystem::copy_options::overwrite_existing);
  Fd writer(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(Cause(file), "a process has it open for writing (is it being copied or built?)");
}

TEST_F(ExecErrorTest, LoopsOfLinksAndOfInterpreters) {
  std::filesystem::create_symlink(folder.Path("link"), folder.Path("link"));
  EXPECT_EQ(Cause(folder.Path("link")), "too many links, or a loop of links");
  std::string file = folder.Path("program");
  EXPECT_EQ(Cause(Program("#!" + file + "\n")),
            "too many interpreters in a row, each of them a script");
}

TEST_F(ExecErrorTest, TooManyArgumentsAreCounted) {
  std::string big(131072, 'x');
  EXPECT_EQ(Cause("/bin/true", {"true", "a", big}),
            "argument 2 has 131072 bytes, at most 131071 are possible");
  EXPECT_EQ(Cause("/bin/true", {"true"}, {"A=1", "BIG=" + big}),
            "the variable BIG has 131076 bytes, at most 131071 are possible");
  std::vector<std::string> many(200, std::string(99'991, 'x'));
  EXPECT_EQ(Cause("/bin/true", many, {"A=1234567"}),
            "its arguments take 20000000 bytes and its environment 18, more than the system "
            "allows (a quarter of ulimit -s, at most 6 MiB)");
  EXPECT_EQ(code, ErrorCode::kSystem);
}

TEST_F(ExecErrorTest, AnyOtherErrorHasTheKernelsText) {
  SpawnSpec spec;
  spec.file = "/bin/true";
  EXPECT_EQ(ExplainExecError(spec, EAGAIN).message,
            "start /bin/true: Resource temporarily unavailable");
  EXPECT_EQ(ExplainExecError(spec, EAGAIN).code, ErrorCode::kExhausted);
  EXPECT_EQ(ExplainExecError(spec, EIO).code, ErrorCode::kSystem);
}

// A pipe in place of the file must not block the search for the cause.
TEST_F(ExecErrorTest, APipeInPlaceOfTheFileIsNotReadFrom) {
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0755), 0);
  EXPECT_EQ(Cause(folder.Path("pipe")), "it is not a regular file");
  EXPECT_EQ(Cause(Program("#!" + folder.Path("pipe") + "\n")),
            "its interpreter " + folder.Path("pipe") + ": it is not a regular file");
}

}  // namespace
}  // namespace rankrun
