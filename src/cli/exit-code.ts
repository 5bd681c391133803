/** What the process ends with (contract 11). */
export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
/** The command line, the environment or the config file is wrong; nothing was started. */
export const EXIT_USAGE = 2;
