/**
 * Breaks a text at its spaces into lines of at most so many characters; a longer word stands alone in its
 * line.
 */
export function wrap(text: string, lengthMax: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > lengthMax) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
