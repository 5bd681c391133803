/* What the kernel lets any server do that makes a system call per event and subscriber. */
#include "frames.h"
#include "modes.h"
#include "options.h"
#include "subscriber.h"
#include "window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void note_end(struct connection *c) {
  (void)c;
  load.ended++;
}

static const struct role READER = {.name = "reader", .ended = note_end};

/* The bytes a broker would write for one event: a chunk that holds the frame. */
static struct request frame_of_broker(void) {
  char id[ID_LINE_BYTES], size[16];
  const struct request *tail = frame_tail();
  int id_length = snprintf(id, sizeof id, "id: %s.%d\n", "k3v9x0q2ab", 1000000);
  int size_length = snprintf(size, sizeof size, "%zx\r\n", (size_t)id_length + tail->length);
  struct request frame = {.length = (size_t)(size_length + id_length) + tail->length + 2};
  frame.bytes = allocate(frame.length, 1);
  char *at = mempcpy(frame.bytes, size, (size_t)size_length);
  at = mempcpy(at, id, (size_t)id_length);
  at = mempcpy(at, tail->bytes, tail->length);
  memcpy(at, "\r\n", 2);
  return frame;
}

static void exchange(ssize_t moved, size_t expected) {
  if (moved != (ssize_t)expected) fail("the other process of the baseline is gone");
}

/* The process that stands for a server: send(2) in a plain loop over blocking sockets. */
__attribute__((noreturn)) static void send_rounds(int listener, int control, const struct request *frame) {
  const int on = 1;
  int *fds = allocate((size_t)options.subscribers, sizeof *fds);
  pin_to(options.sender_cpu);
  for (long i = 0; i < options.subscribers; i++) {
    fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fds[i] < 0) fail("accept: %s", strerror(errno));
    set_option(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  char go = 0;
  exchange(write(control, &go, 1), 1);
  exchange(read(control, &go, 1), 1);

  u64 sends = 0, until_ns = after_ms(options.duration_ms);
  do {
    for (long i = 0; i < options.subscribers; i++) {
      ssize_t sent = send(fds[i], frame->bytes, frame->length, MSG_NOSIGNAL);
      if (sent != (ssize_t)frame->length) fail("send: %s", strerror(errno));
    }
    sends += (u64)options.subscribers;
  } while (now_ns() < until_ns);
  for (long i = 0; i < options.subscribers; i++) shutdown(fds[i], SHUT_WR);

  exchange(write(control, &sends, sizeof sends), sizeof sends);
  exit(read(control, &go, 1) == 0 ? 0 : 1); /* its processor time is read before it goes */
}

static int listen_on_loopback(void) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = loopback(INADDR_LOOPBACK, 0);
  struct sockaddr *any = (struct sockaddr *)&address;
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, any, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, any, &length) != 0) {
    fail("cannot listen: %s", strerror(errno));
  }
  options.port = ntohs(address.sin_port);
  return listener;
}

static bool all_ended(void) { return load.ended == options.subscribers; }

void run_send(void) {
  struct request frame = frame_of_broker();
  int controls[2], listener = listen_on_loopback();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, controls) != 0) fail("no pair of sockets");
  pid_t sender = fork();
  if (sender < 0) fail("cannot fork: %s", strerror(errno));
  if (sender == 0) {
    close(controls[0]);
    send_rounds(listener, controls[1], &frame);
  }
  close(controls[1]);
  close(listener);

  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  for (int i = 0; i < options.subscribers; i++) {
    open_connection(&load.subscribers[i], &READER, i, NULL, options.port, NULL);
  }
  char go = 0;
  u64 sends = 0;
  exchange(read(controls[0], &go, 1), 1);
  watch_server(sender);
  begin_window();
  exchange(write(controls[0], &go, 1), 1);
  turn_until(all_ended, options.duration_ms, "draining the baseline");
  end_window();
  exchange(read(controls[0], &sends, sizeof sends), sizeof sends);
  if (load.received_bytes != sends * frame.length) fail("the baseline lost bytes");
  close(controls[0]);
  waitpid(sender, NULL, 0);

  print_window("send");
  printf(",\"subscribers\":%ld,\"frameBytes\":%zu", options.subscribers, frame.length);
  printf(",\"sends\":%llu,\"sendsPerSecond\":%.1f", sends, (double)sends / window_s());
  printf(",\"megabytesPerSecond\":%.3f}\n", (double)load.received_bytes / 1e6 / window_s());
}
