export type EndSignal = 'SIGTERM' | 'SIGINT';

export interface EndSignals {
  /** Somebody wants the process to end. */
  readonly first: Promise<EndSignal>;
  /** And does not want to wait. */
  readonly second: Promise<EndSignal>;
}

/**
 * Under `npm start` one Ctrl-C arrives twice: the terminal sends it to all of its processes, and npm passes
 * its own on. Nobody presses it again on purpose within this time.
 */
const SAME_KEYPRESS_MS = 500;

/** Takes over what SIGTERM and SIGINT do, for the rest of the process's life. */
export function watchEndSignals(): EndSignals {
  let seeFirst: (signal: EndSignal) => void;
  let seeSecond: (signal: EndSignal) => void;
  const first = new Promise<EndSignal>((resolve) => {
    seeFirst = resolve;
  });
  const second = new Promise<EndSignal>((resolve) => {
    seeSecond = resolve;
  });

  let firstAtMs: number | undefined;
  const see = (signal: EndSignal) => {
    const nowMs = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = nowMs;
      seeFirst(signal);
    } else if (signal !== 'SIGINT' || nowMs - firstAtMs > SAME_KEYPRESS_MS) {
      seeSecond(signal);
    }
  };
  process.on('SIGTERM', see);
  process.on('SIGINT', see);
  return { first, second };
}
