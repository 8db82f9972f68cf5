#include "tenon/base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tenon/base/text.h"

namespace tenon {
namespace {

constexpr size_t no_slot = ~size_t{0};
constexpr size_t longest_text = 4096;

// Handlers may read slots at any moment, so these are fixed and never freed: a slot is filled, then opened, and closed
// before it is used again.
struct Slot {
  std::atomic<bool> taken = false, open = false;
  std::atomic<uintptr_t> begin = 0, end = 0;  // mappings
  std::array<char, longest_text> text{};      // a path, or a sentence
};

template <size_t N>
struct Slots {
  std::array<Slot, N> all;

  size_t put(const std::string& text, uintptr_t begin, uintptr_t end) {
    if (text.size() >= longest_text) return no_slot;
    for (size_t i = 0; i < N; ++i) {
      Slot& slot = all[i];
      if (slot.taken.exchange(true)) continue;
      std::memcpy(slot.text.data(), text.c_str(), text.size() + 1);
      slot.begin = begin;
      slot.end = end;
      slot.open = true;
      return i;
    }
    return no_slot;
  }
  void drop(size_t i) {
    if (i == no_slot) return;
    all[i].open = false;
    all[i].taken = false;
  }
};

Slots<16> half_written;
Slots<64> mappings;

void remove_half_written() {
  for (Slot& slot : half_written.all)
    if (slot.open) ::unlink(slot.text.data());
}

void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // delivered when the handler returns
}

void on_end(int signal) {
  int error = errno;
  remove_half_written();
  end_by(signal);
  errno = error;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Slot& slot : mappings.all) {
    if (!slot.open || address < slot.begin || address >= slot.end) continue;
    remove_half_written();
    size_t length = ::strnlen(slot.text.data(), longest_text);
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, slot.text.data(), length);
    ::_exit(1);
  }
  end_by(signal);
}

}  // namespace

void install_signal_handlers() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup, or a shell's background job: it stays so
    struct sigaction action {};
    action.sa_handler = on_end;
    ::sigaction(signal, &action, nullptr);
  }
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

HalfWritten::HalfWritten(const std::string& path) : slot_(half_written.put(path, 0, 0)) {}
HalfWritten::~HalfWritten() { half_written.drop(slot_); }

WatchedMapping::WatchedMapping(const void* start, size_t size, const std::string& path)
    : slot_(mappings.put(text("tenon: ", quoted(path, 400), ": the file was cut short while it was being read\n"),
                         reinterpret_cast<uintptr_t>(start), reinterpret_cast<uintptr_t>(start) + size)) {}
WatchedMapping::~WatchedMapping() { mappings.drop(slot_); }

}  // namespace tenon
