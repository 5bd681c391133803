/**
 * The port of an edge, in plain or with TLS (contract 9.3). The library cannot exchange the certificate of an app, so a
 * renewed one is a new app: it listens beside the old one on the shared port, and takes over when that stops listening.
 * What is connected stays with the app that accepted it.
 */

import uWS, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface ListenerOptions {
  readonly host: string;
  /** Paths of PEM files; null: plain TCP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly addRoutes: (app: TemplatedApp) => void;
}

/** Apps that still have connections of before; with another renewal those of the oldest are cut. */
const OLD_APPS_MAX = 8;
/** Enough for every descriptor to be in a handshake. */
const CLOSE_TURNS_MAX = 20_000;

export class Listener {
  readonly #options: ListenerOptions;
  readonly #oldApps: TemplatedApp[] = [];
  #app: TemplatedApp;
  #socket: us_listen_socket | null = null;
  #port = 0;

  /** @throws Error when the certificate or its key cannot be used. */
  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#app = this.#createApp();
  }

  /** Listens there and nowhere else. @returns whether the port could be had. */
  listen(port: number): boolean {
    if (this.#socket !== null) uWS.us_listen_socket_close(this.#socket);
    this.#port = port;
    this.#socket = this.#listenWith(this.#app);
    return this.#socket !== null;
  }

  /**
   * Takes the certificate and key that are in the files now, for connections to come.
   * @throws Error when they cannot be used; all stays as it was.
   */
  renewCertificate(): void {
    if (this.#options.tls === null || this.#socket === null) return;
    const app = this.#createApp();
    const socket = this.#listenWith(app);
    if (socket === null) throw new Error(`cannot listen on port ${this.#port} once more`);
    uWS.us_listen_socket_close(this.#socket);
    this.#oldApps.push(this.#app);
    if (this.#oldApps.length > OLD_APPS_MAX) this.#oldApps.shift()?.close();
    this.#app = app;
    this.#socket = socket;
  }

  /**
   * Stops listening and cuts all connections. The library keeps those in the middle of a TLS handshake in a queue of
   * their own, a few of which it takes up each turn, and does not close them: so it is told again until none is left, or
   * the end of the thread would abort the process.
   * @param connections how many are open.
   */
  async close(connections: () => number): Promise<void> {
    if (this.#socket !== null) uWS.us_listen_socket_close(this.#socket);
    this.#socket = null;
    const apps = [...this.#oldApps.splice(0), this.#app];
    for (let turn = 0; turn < CLOSE_TURNS_MAX; turn++) {
      for (const app of apps) app.close();
      if (connections() === 0) return;
      await nextTurn();
    }
  }

  #createApp(): TemplatedApp {
    const { tls, addRoutes } = this.#options;
    const app =
      tls === null ? uWS.App() : uWS.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
    addRoutes(app);
    return app;
  }

  #listenWith(app: TemplatedApp): us_listen_socket | null {
    let listening: us_listen_socket | null = null;
    // Called before `listen` returns.
    app.listen(this.#options.host, this.#port, (socket) => {
      listening = socket === false ? null : socket;
    });
    return listening;
  }
}
