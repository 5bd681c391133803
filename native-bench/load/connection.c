#include "connection.h"

#include "options.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
  TURN_EVENTS = 512,
  SETTLE_MS = 100,
  SLOW_MS = 20,
  SLOW_BYTES = 2048, /* what a slow reader takes every SLOW_MS */
  PORTS_PER_ADDRESS = 20 * 1000,
};

struct load load;

static int epoll;
static char receive_buffer[RECEIVE_BYTES];
static u64 slow_read_ns;

void prepare_load(void) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) fail("epoll: %s", strerror(errno));
  load.streams = allocate((size_t)options.streams, sizeof *load.streams);
}

struct stream *stream_of(int subscriber) { return &load.streams[subscriber % options.streams]; }

struct sockaddr_in loopback(uint32_t host, long port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons((uint16_t)port)};
}

void set_option(int fd, int level, int name, const void *value, socklen_t length) {
  if (setsockopt(fd, level, name, value, length) != 0) fail("setsockopt: %s", strerror(errno));
}

void send_request(struct connection *c) {
  while (c->request && c->sent < c->request->length) {
    ssize_t sent = send(c->fd, c->request->bytes + c->sent, c->request->length - c->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) fail("%s %d: cannot send: %s", c->role->name, c->index, strerror(errno));
    c->sent += (size_t)sent;
  }
}

/* That a connection is refused shows at its first event. */
static void connect_socket(struct connection *c) {
  const int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) fail("cannot open socket %d: %s", c->index, strerror(errno));
  if (c->role->reads_slowly) {
    const int bytes = SLOW_BYTES; /* or the kernel would hold what it has not read */
    set_option(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  if (c->index >= PORTS_PER_ADDRESS) {
    struct sockaddr_in source = loopback(INADDR_LOOPBACK + (uint32_t)(c->index / PORTS_PER_ADDRESS), 0);
    set_option(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(c->fd, (struct sockaddr *)&source, sizeof source) != 0) fail("cannot bind: %s", strerror(errno));
  }
  struct sockaddr_in server = loopback(INADDR_LOOPBACK, c->port);
  if (connect(c->fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) {
    fail("%s %d: connecting to 127.0.0.1:%ld: %s", c->role->name, c->index, c->port, strerror(errno));
  }
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) fail("epoll: %s", strerror(errno));
}

void open_connection(struct connection *c, const struct role *role, int index, struct stream *stream, long port,
                     const struct request *request) {
  *c = (struct connection){.role = role, .index = index, .stream = stream, .port = port, .request = request};
  connect_socket(c);
  send_request(c);
}

void reopen(struct connection *c) {
  c->closes = false;
  connect_socket(c);
}

void send_without_delay(const struct connection *c) {
  const int on = 1;
  set_option(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void close_connections(struct connection *connections, long count) {
  const struct linger reset = {.l_onoff = 1};
  for (long i = 0; i < count; i++) {
    struct connection *c = &connections[i];
    free(c->frame);
    c->frame = NULL;
    if (c->fd < 0) continue;
    set_option(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(c->fd);
    c->fd = -1;
  }
}

/* Edge-triggered: a read that does not fill the buffer has emptied the socket, but for its end. */
static void receive(struct connection *c, bool at_end) {
  ssize_t count;
  do {
    count = recv(c->fd, receive_buffer, RECEIVE_BYTES, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail("%s %d at 127.0.0.1:%ld: %s", c->role->name, c->index, c->port, strerror(errno));
    load.received_bytes += (u64)count;
    if (load.times_receipts) load.received_ns = now_ns();
    if (c->role->take) c->role->take(c, receive_buffer, (size_t)count);
    if (c->fd < 0) return; /* its answer was the last on this connection */
  } while (count == RECEIVE_BYTES || (at_end && count > 0));
  if (!at_end) return;
  if (!c->role->ended) fail("the server closed the connection of %s %d", c->role->name, c->index);
  epoll_ctl(epoll, EPOLL_CTL_DEL, c->fd, NULL);
  c->role->ended(c);
}

/* A little at a time, whether more is there or not. */
static void read_slowly(void) {
  u64 now = now_ns();
  if (now < slow_read_ns + (u64)SLOW_MS * 1000000u) return;
  slow_read_ns = now;
  for (long i = 0; i < options.slow; i++) {
    struct connection *c = &load.slow[i];
    ssize_t count = recv(c->fd, receive_buffer, SLOW_BYTES, 0);
    if (count < 0 && errno == EAGAIN) continue;
    if (count <= 0) fail("%s %d: the connection ended", c->role->name, c->index);
    c->role->take(c, receive_buffer, (size_t)count);
  }
}

bool skip_body(struct connection *c, const char **bytes, size_t *count) {
  size_t length = smaller(*count, c->body_left);
  c->body_left -= length;
  *bytes += length;
  *count -= length;
  return c->body_left == 0;
}

void turn(int timeout_ms) {
  static struct epoll_event events[TURN_EVENTS];
  int count = epoll_wait(epoll, events, TURN_EVENTS, timeout_ms);
  if (count < 0 && errno != EINTR) fail("epoll: %s", strerror(errno));
  for (int i = 0; i < count; i++) {
    struct connection *c = events[i].data.ptr;
    uint32_t ready = events[i].events;
    if (c->fd < 0) continue;
    if (ready & EPOLLOUT) send_request(c);
    if (c->role->reads_slowly) continue;
    if (ready & ~(uint32_t)EPOLLOUT) receive(c, ready & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
  }
  if (load.slow) read_slowly();
}

void turn_before(u64 until_ns) {
  u64 now = now_ns();
  if (until_ns > now) {
    struct pollfd wait = {.fd = epoll, .events = POLLIN};
    u64 left_ns = until_ns - now;
    struct timespec timeout = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
    if (ppoll(&wait, 1, &timeout, NULL) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
  }
  turn(0);
}

void turn_until(bool (*done)(void), long expected_ms, const char *what) {
  u64 deadline_ns = after_ms(expected_ms + STALL_MS);
  while (!done()) {
    turn(TURN_MS);
    if (now_ns() > deadline_ns) fail("%s: not within %ld ms", what, expected_ms + STALL_MS);
  }
}

void settle(void) {
  for (u64 end_ns = after_ms(SETTLE_MS); now_ns() < end_ns;) turn(SETTLE_MS / 10);
}

bool has_input(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, 0) > 0;
}

void hold_until_input_ends(void) {
  struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = epoll, .events = POLLIN}};
  for (;;) {
    if (poll(waits, 2, -1) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
    if (waits[1].revents) turn(0);
    if (waits[0].revents && read(STDIN_FILENO, receive_buffer, RECEIVE_BYTES) <= 0) return;
  }
}
