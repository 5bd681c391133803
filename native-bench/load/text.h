/* Lines of HTTP and of event streams, and what stands in them. */
#pragma once

#include "process.h"

#include <stdbool.h>
#include <stdint.h>

enum { LINE_BYTES = 512, EPOCH_BYTES = 16 };

/* A line that may arrive in pieces. */
struct line {
  uint32_t length;
  char text[LINE_BYTES];
};

/* Takes bytes up to a line feed. Returns the line without its break once it is whole, NULL until then. */
const char *take_line(struct line *line, const char **bytes, size_t *count);

/* The rest of `text` if it starts with `name` in any case ("content-length:"), without the blanks between. */
const char *field_value(const char *text, const char *name);

struct cursor {
  char epoch[EPOCH_BYTES + 1];
  u64 seq;
};

/* Contract 1: "<epoch>.<seq>". */
bool parse_cursor(const char *text, struct cursor *cursor);

/* A copy with the number in the place of each "@". */
char *numbered(const char *template, long number);
