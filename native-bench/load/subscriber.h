/* Subscribers: the head of an answer, its chunks, and what the stream begins with. */
#pragma once

#include "connection.h"

extern const struct role SUBSCRIBER;

/* Finds the bytes of the stream in those of the connection, and hands them on. */
void take_answer_of_stream(struct connection *c, const char *bytes, size_t count,
                           void (*take)(struct connection *c, const char *bytes, size_t count));

/* `cursor` is a line of the head that gives the position, or empty. */
void prepare_subscribe(const char *query, const char *cursor);

/* From the newest event, a few at a time, until all have the priming frame; slow ones too. */
void open_subscribers_gently(void);

/*
 * The same for any role; `open` opens the subscriber of a number. Never more than --opening without an answer, below
 * any listen backlog: setting up must not run into SYN retransmission.
 */
void open_gently(void (*open)(int index));

/* Whether every subscriber has what its stream has acknowledged. */
bool all_caught_up(void);
bool has_all(const struct connection *c);

void print_deliveries(u64 deliveries);
