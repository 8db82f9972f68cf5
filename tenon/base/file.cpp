#include "tenon/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tenon/base/error.h"

namespace tenon {

namespace {

constexpr size_t buffer_limit = 1 << 18;
constexpr size_t write_limit = 1 << 30;  // write(2) takes at most 2 GiB at a time

std::string reason(int error) { return std::strerror(error); }

struct Descriptor {
  int value;
  explicit Descriptor(int value) : value(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

[[noreturn]] void fail_system(const char* verb, const std::string& path, int error) {
  fail("cannot ", verb, " ", quoted(path, 400), ": ", reason(error));
}

// Opening a pipe that nobody writes to does not wait.
int open_for_reading(const std::string& path, struct stat& info) {
  require(path.find('\0') == std::string::npos, "cannot read ", quoted(path), ": a path cannot hold a NUL character");
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_system("read", path, errno);
  if (::fstat(descriptor, &info) != 0) {
    int error = errno;
    ::close(descriptor);
    fail_system("read", path, error);
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    fail("cannot read ", quoted(path, 400), ": expected a file, found a folder");
  }
  return descriptor;
}

// Where a link leads, whether or not there is something: a file written through it is to appear there.
std::string link_target(const std::string& path) {
  std::string target = path;
  for (int hops = 0;; ++hops) {
    struct stat info {};
    if (::lstat(target.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return target;
    if (hops == 40) fail_system("write", path, ELOOP);
    std::string content(4096, '\0');
    ssize_t length = ::readlink(target.c_str(), content.data(), content.size());
    if (length < 0) fail_system("write", path, errno);
    content.resize(static_cast<size_t>(length));
    size_t slash = target.rfind('/');
    target = starts_with(content, "/") || slash == std::string::npos ? content : target.substr(0, slash + 1) + content;
  }
}

// Brings what was written to the disk. File systems that cannot are left alone.
int synced(int descriptor) {
  int error = ::fsync(descriptor) == 0 ? 0 : errno;
  return error == EINVAL || error == ENOTSUP || error == EROFS ? 0 : error;
}

void sync_folder(const std::string& folder) {
  Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (opened.value >= 0) (void)::fsync(opened.value);  // the file itself is safe already
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  struct stat info {};
  Descriptor file(open_for_reading(path, info));
  require(S_ISREG(info.st_mode), "cannot map ", quoted(path, 400),
          ": expected a regular file, found a pipe or a device");
  require(info.st_size > 0, "cannot read ", quoted(path, 400), ": the file is empty");
  auto size = static_cast<size_t>(info.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (start == MAP_FAILED) fail_system("map", path, errno);
  return std::shared_ptr<const MappedFile>(new MappedFile(path, {static_cast<const std::byte*>(start), size}));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  require(!path.empty(), "cannot write a file with an empty name");
  require(path.find('\0') == std::string::npos, "cannot write ", quoted(path), ": a path cannot hold a NUL character");
  target_ = link_target(path);  // a link keeps pointing where it did: the file it names is the one replaced
  mode_t mode = 0;
  struct stat info {};
  if (::stat(target_.c_str(), &info) == 0) {
    require(!S_ISDIR(info.st_mode), "cannot write ", quoted(path, 400), ": it is a folder");
    require(S_ISREG(info.st_mode), "cannot write ", quoted(path, 400),
            ": it is a pipe or a device, not a regular file");
    mode = info.st_mode & 07777;
  }
  size_t slash = target_.rfind('/');
  std::string folder = slash == std::string::npos ? "" : target_.substr(0, slash + 1);
  static std::atomic<uint64_t> count = 0;
  for (int attempt = 0;; ++attempt) {
    std::string name = text(folder, ".tenon-", ::getpid(), "-", count++, ".partial");
    half_written_.emplace(name);  // before it is there: a signal may come in between
    descriptor_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = std::move(name);
      break;
    }
    int error = errno;
    half_written_.reset();
    if (error != EEXIST || attempt >= 100) fail_system("write", path, error);
  }
  if (mode != 0) (void)::fchmod(descriptor_, mode);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::unmap() {
  for (std::span<std::byte> region : mapped_) ::munmap(region.data(), region.size());
  mapped_.clear();
}

void AtomicFile::discard() {
  unmap();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  half_written_.reset();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  expect(descriptor_ >= 0, "a write to ", path_, " after commit");
  if (buffer_.size() + bytes.size() > buffer_limit) flush();
  if (bytes.size() > buffer_limit) return write_through(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  flushed_ += bytes.size();
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), write_limit));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system("write", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

std::span<std::byte> AtomicFile::write_mapped(uint64_t size) {
  expect(descriptor_ >= 0, "a write to ", path_, " after commit");
  flush();
  expect(flushed_ % 4096 == 0, "a mapped write to ", path_, " at ", flushed_);
  if (size == 0) return {};
  int error = ::posix_fallocate(descriptor_, static_cast<off_t>(flushed_), static_cast<off_t>(size));
  require(error == 0, "cannot write ", quoted(path_, 400), ": ", reason(error));
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(flushed_));
  require(start != MAP_FAILED, "cannot write ", quoted(path_, 400), ": ", reason(errno));
  mapped_.emplace_back(static_cast<std::byte*>(start), size);
  flushed_ += size;
  require(::lseek(descriptor_, static_cast<off_t>(flushed_), SEEK_SET) >= 0, "cannot write ", quoted(path_, 400), ": ",
          reason(errno));
  return mapped_.back();
}

void AtomicFile::overwrite(uint64_t position, std::span<const std::byte> bytes) {
  expect(descriptor_ >= 0, "a write to ", path_, " after commit");
  flush();
  expect(position <= flushed_ && bytes.size() <= flushed_ - position, "an overwrite of ", path_, " beyond its end");
  while (!bytes.empty()) {
    ssize_t written =
        ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), write_limit), static_cast<off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    require(written >= 0, "cannot write ", quoted(path_, 400), ": ", reason(errno));
    bytes = bytes.subspan(static_cast<size_t>(written));
    position += static_cast<uint64_t>(written);
  }
}

void AtomicFile::commit() {
  expect(descriptor_ >= 0, "a second commit of ", path_);
  flush();
  unmap();
  // Before the rename: after a power cut there is the old file or the new one, never an empty one.
  if (int error = synced(descriptor_)) fail_system("write", path_, error);
  int closed = ::close(std::exchange(descriptor_, -1));  // network file systems report a full disk here
  if (closed != 0) fail_system("write", path_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_system("write", path_, errno);
  temporary_.clear();
  half_written_.reset();
  sync_folder(target_.substr(0, target_.rfind('/') + 1));
}

std::shared_ptr<const std::byte> zero_pages(size_t size) {
  size = std::max<size_t>(size, 1);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) fail("cannot make ", size, " bytes of zeros: ", reason(errno));
  return {static_cast<const std::byte*>(start),
          [size](const std::byte* pages) { ::munmap(const_cast<std::byte*>(pages), size); }};
}

std::string read_file(const std::string& path) {
  struct stat info {};
  Descriptor file(open_for_reading(path, info));
  ::fcntl(file.value, F_SETFL, 0);  // a pipe that somebody writes to is waited for
  std::string content;
  size_t size = 0;
  size_t guess = S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) : 0;
  for (;;) {
    if (size == content.size()) content.resize(std::max(guess + 1, size + size / 2 + 4096));
    ssize_t got = ::read(file.value, content.data() + size, std::min(content.size() - size, write_limit));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system("read", path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  content.resize(size);
  return content;
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace tenon
