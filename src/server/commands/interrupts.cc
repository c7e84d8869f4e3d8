#include "server/commands/interrupts.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace linnet {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);  // sent by the destructor to end the waiter
  return set;
}

}  // namespace

Interrupts::Interrupts(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  waiter_ = std::thread([this, set] {
    for (int number = 0; sigwait(&set, &number) == 0 && number != SIGUSR2;) on_signal_(number);
  });
}

Interrupts::~Interrupts() {
  pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

}  // namespace linnet
