/*
 * What a subscriber of the broker must get, to the byte. A frame is verified by comparing it with the only one that
 * may come next: a memcmp checks id and content, with no parse, no copy and no reassembly, wherever recv(2) or a
 * chunk of the transfer coding cuts it.
 */
#pragma once

#include "connection.h"

/* "id: ", the epoch, '.', at most 20 digits, a line feed and a NUL */
enum { ID_LINE_BYTES = 48 };

/* Contract 4.3: what every frame of the run holds after its id line. */
void prepare_frames(void);
const struct request *frame_tail(void);

/* The data of an event: JSON, for it goes as NDJSON too. */
void fill_payload(char *bytes);

/* After the priming frame: the next one is that after `c->seq`. */
void start_frames(struct connection *c);

void match_events(struct connection *c, const char *bytes, size_t count);

/* Called for each whole frame while it is set. */
extern void (*on_delivery)(u64 seq);
