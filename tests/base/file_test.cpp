#include "tenon/base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "tenon/base/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

struct FileTest : testing::Test {
  std::string folder = testing::TempDir() + "tenon_file_" + std::to_string(::getpid());
  void SetUp() override { fs::create_directory(folder); }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return folder + "/" + name; }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
    return count;
  }
};

std::string message(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) { return error.what(); }
  return "";
}

TEST_F(FileTest, WhatIsWrittenIsRead) {
  std::string content(300'000, 'x');
  content[7] = '\0';
  write_file_atomically(path("a"), content);
  EXPECT_EQ(read_file(path("a")), content);
  auto mapped = MappedFile::open(path("a"));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()), content);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, AnEmptyFileReadsEmptyAndIsNotMapped) {
  write_file_atomically(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_NE(message([&] { MappedFile::open(path("a")); }).find("the file is empty"), std::string::npos);
}

TEST_F(FileTest, MissingFilesAndFoldersAreNamed) {
  EXPECT_EQ(message([&] { MappedFile::open(path("none")); }),
            "cannot read '" + path("none") + "': No such file or directory");
  EXPECT_NE(message([&] { MappedFile::open(folder); }).find("found a folder"), std::string::npos);
  EXPECT_NE(message([&] { read_file(folder); }).find("found a folder"), std::string::npos);
  EXPECT_NE(message([&] { AtomicFile file(folder); }).find("it is a folder"), std::string::npos);
  EXPECT_NE(message([&] { AtomicFile file(path("no/where")); }).find("No such file"), std::string::npos);
}

TEST_F(FileTest, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  write_file_atomically(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write(std::string(1'000'000, 'n'));
    EXPECT_EQ(file.position(), 1'000'000u);
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_file(path("a")), "old");
}

TEST_F(FileTest, ALinkKeepsPointingToTheFileWritten) {
  write_file_atomically(path("real"), "old");
  ASSERT_EQ(::symlink("real", path("link").c_str()), 0);
  write_file_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")), "new");
}

TEST_F(FileTest, TheModeOfAReplacedFileIsKept) {
  write_file_atomically(path("a"), "old");
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  write_file_atomically(path("a"), "new");
  struct stat info {};
  ASSERT_EQ(::stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(FileTest, AWriteThatFailsIsAnErrorAndLeavesTheOldFile) {
  write_file_atomically(path("a"), "old");
  auto previous = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{10'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string large = message([&] { write_file_atomically(path("a"), std::string(1'000'000, 'n')); });
  std::string at_commit = message([&] { write_file_atomically(path("a"), std::string(20'000, 'n')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, previous);
  EXPECT_EQ(large, "cannot write '" + path("a") + "': File too large");
  EXPECT_EQ(at_commit, large);
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, MappedBytesAndOverwrittenOnesArriveInTheFile) {
  {
    AtomicFile file(path("a"));
    file.write(std::string(4096, 'a'));
    std::span<std::byte> mapped = file.write_mapped(10'000);
    file.write("end");
    EXPECT_EQ(file.position(), 4096u + 10'000 + 3);
    mapped[0] = mapped[9'999] = std::byte{'m'};
    file.overwrite(1, std::as_bytes(std::span("xy", 2)));
    file.commit();
  }
  std::string expected(4096, 'a');
  expected += std::string(10'000, '\0') + "end";
  expected[1] = 'x';
  expected[2] = 'y';
  expected[4096] = expected[4096 + 9'999] = 'm';
  EXPECT_EQ(read_file(path("a")), expected);
}

TEST_F(FileTest, AFullDiskIsAnErrorBeforeMappedBytesAreWritten) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100'000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string told = message([&] { AtomicFile(path("a")).write_mapped(1 << 20); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(told.find("cannot write"), told.npos) << told;
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileTest, ALinkToNothingLeadsToTheFileWritten) {
  ASSERT_EQ(::symlink("there", path("link").c_str()), 0);
  ASSERT_EQ(::symlink(path("link").c_str(), path("far").c_str()), 0);
  write_file_atomically(path("far"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("far")));
  EXPECT_EQ(read_file(path("there")), "new");
  EXPECT_EQ(files(), 3u);
}

TEST_F(FileTest, LinksInACircleAreNamed) {
  ASSERT_EQ(::symlink("b", path("a").c_str()), 0);
  ASSERT_EQ(::symlink("a", path("b").c_str()), 0);
  EXPECT_NE(message([&] { AtomicFile file(path("a")); }).find("Too many levels of symbolic links"), std::string::npos);
}

TEST_F(FileTest, APipeIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(message([&] { MappedFile::open(path("pipe")); }).find("found a pipe or a device"), std::string::npos);
  EXPECT_EQ(read_file(path("pipe")), "");
}

TEST_F(FileTest, TheReasonIsTheOneOfTheCallThatFailed) {
  EXPECT_NE(message([&] { AtomicFile file("/proc/self/x"); }).find("No such file or directory"), std::string::npos);
  EXPECT_NE(message([&] { MappedFile::open("/proc/self/fd/987/x"); }), "");
}

// A child that the signal ends: what it leaves behind, and how it ends.
int status_of_child(const std::function<void()>& act) {
  pid_t child = ::fork();
  if (child == 0) {
    act();
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(FileTest, ASignalLeavesNothingHalfWritten) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int status = status_of_child([&] {
      ::signal(signal, SIG_DFL);  // a job in the background may have been told to ignore it
      install_signal_handlers();
      AtomicFile file(path("a"));
      file.write(std::string(1'000'000, 'n'));
      ::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(files(), 0u);
  }
}

TEST_F(FileTest, AFileCutShortWhileItIsMappedEndsInASentence) {
  write_file_atomically(path("a"), std::string(100'000, 'x'));
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  int status = status_of_child([&] {
    install_signal_handlers();
    ::dup2(said[1], STDERR_FILENO);
    auto mapped = MappedFile::open(path("a"));
    AtomicFile half(path("b"));
    if (::truncate(path("a").c_str(), 10) != 0) ::_exit(8);
    volatile std::byte last = mapped->bytes()[99'999];
    (void)last;
  });
  ::close(said[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(::read(said[0], text.data(), text.size())));
  ::close(said[0]);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(text, "tenon: '" + path("a") + "': the file was cut short while it was being read\n");
  EXPECT_EQ(files(), 1u);
}

TEST(ZeroPages, AreZerosThatTakeNoMemory) {
  constexpr size_t size = size_t{1} << 36;  // more than machines have, less than sanitizers leave room for
  auto pages = zero_pages(size);
  EXPECT_EQ(pages.get()[0], std::byte{0});
  EXPECT_EQ(pages.get()[size - 1], std::byte{0});
}

TEST(AtomicFile, DevicesAreNotReplaced) { EXPECT_THROW(AtomicFile("/dev/null"), Error); }

}  // namespace
}  // namespace tenon
