/*
 * The load side of the bench: subscribers and publishers on one thread and one epoll, every frame verified.
 *
 * It has to be much cheaper than the server that it measures: one receive buffer for all connections, and no copy.
 *
 * stdout: one line of JSON. Exit 0: measured and verified. 1: a gap, a duplicate, foreign bytes, a
 * refusal, a lost connection or a timeout, and then there is no number. 2: usage.
 */
#include "connection.h"
#include "frames.h"
#include "modes.h"
#include "options.h"
#include "window.h"

enum { DESCRIPTORS_SPARE = 16 };

static const struct mode modes[] = {
    {"send", run_send, false, "the baseline: a plain loop of send(2), one frame a call, over --subscribers"},
    {"publish", run_publish, true, "--publishers in a closed loop for --duration-ms, nobody listening"},
    {"fanout", run_fanout, true, "the same with --subscribers, until all have the last acknowledged event"},
    {"latency", run_latency, true, "--rate publishes a second, and how late they reach --subscribers"},
    {"storm", run_storm, true, "--subscribers resume at once, --events behind; --times over"},
    {"surge", run_surge, true, "the same over and over, each on its own, until stdin closes"},
    {"attack", run_attack, true, "--subscribers requests without an end, --rate connects and forged tokens a second"},
    {"peer", run_peer, true, "a fan-out of any server that takes POST and delivers SSE; --rate 0: closed loop"},
    {"peer-storm", run_peer_storm, true, "--subscribers come to such a server at once for --events that it has"},
    {"ask", run_ask, true, "--publishers that send --request and wait for --answer-lines, in a closed loop"},
    {"idle", run_idle, true, "--subscribers that wait until stdin closes"},
};

int main(int count, char **arguments) {
  const struct mode *mode = read_command(count, arguments, modes, sizeof modes / sizeof *modes);
  watch_servers(options.server_pids);
  need_descriptors((unsigned long)(options.subscribers + options.slow + options.publishers + DESCRIPTORS_SPARE));
  pin_to(options.cpu);
  prepare_load();
  prepare_frames();
  mode->run();
  return 0;
}
