/* What the load client can do, each to its end: with a line of JSON, or a failure. */
#pragma once

void run_publish(void);
void run_fanout(void);
void run_latency(void);
void run_storm(void);
void run_surge(void);
void run_attack(void);
void run_peer(void);
void run_peer_storm(void);
void run_ask(void);
void run_idle(void);
void run_send(void);
