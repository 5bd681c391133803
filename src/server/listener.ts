/**
 * The port of an edge, in plain or with TLS (contract 9.3). The library cannot exchange the certificate of an app, so a
 * renewed one is a new app: it listens beside the old one on the shared port, and takes over when that stops listening.
 * What is connected stays with the app that accepted it.
 */

import uWS, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js';

export interface ListenerOptions {
  readonly host: string;
  /** Paths of PEM files; null: plain TCP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly addRoutes: (app: TemplatedApp) => void;
}

/** Apps that still have connections of before; with another renewal those of the oldest are cut. */
const OLD_APPS_MAX = 8;

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

  /** @returns whether the port could be had. */
  listen(port: number): boolean {
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

  /** Stops listening and cuts all connections. */
  close(): void {
    if (this.#socket !== null) uWS.us_listen_socket_close(this.#socket);
    this.#socket = null;
    for (const app of [...this.#oldApps.splice(0), this.#app]) app.close();
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
