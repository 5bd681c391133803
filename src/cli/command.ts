/** One word after `gapless`. */
export interface Command {
  readonly name: string;
  /** Half a sentence for the list of commands. */
  readonly summary: string;
  /** What `--help` prints. */
  usage(): string;
  /** Runs it to its end and gives the exit code. `argv` is what stands behind the name. */
  run(argv: readonly string[]): Promise<number>;
}
