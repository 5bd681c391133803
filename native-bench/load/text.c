#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *take_line(struct line *line, const char **bytes, size_t *count) {
  const char *feed = memchr(*bytes, '\n', *count);
  size_t length = feed ? (size_t)(feed - *bytes) : *count;
  if (line->length + length >= LINE_BYTES) fail("the server sent a line of %d bytes or more", LINE_BYTES);
  memcpy(line->text + line->length, *bytes, length);
  line->length += (uint32_t)length;
  *bytes += length + (feed != NULL);
  *count -= length + (feed != NULL);
  if (!feed) return NULL;

  if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
  line->text[line->length] = '\0';
  line->length = 0;
  return line->text;
}

const char *field_value(const char *text, const char *name) {
  size_t length = strlen(name);
  return strncasecmp(text, name, length) == 0 ? text + length + strspn(text + length, " ") : NULL;
}

bool parse_cursor(const char *text, struct cursor *cursor) {
  size_t length = strcspn(text, ".");
  if (length == 0 || length > EPOCH_BYTES || text[length] == '\0') return false;
  if (!isdigit((unsigned char)text[length + 1])) return false;
  memcpy(cursor->epoch, text, length);
  cursor->epoch[length] = '\0';
  cursor->seq = strtoull(text + length + 1, NULL, 10);
  return true;
}

char *numbered(const char *template, long number) {
  char digits[24], *text;
  size_t length;
  FILE *out = open_memstream(&text, &length);
  if (!out) fail("no memory");
  snprintf(digits, sizeof digits, "%ld", number);
  for (; *template; template++) {
    if (*template == '@') fputs(digits, out);
    else fputc(*template, out);
  }
  fclose(out);
  return text;
}
