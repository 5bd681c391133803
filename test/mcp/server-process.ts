import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { withDeadline } from '../support/deadline.js';
import type { SdkVersion } from './sdk-server.js';

/** A server of the SDK that can be killed. */
export class ServerProcess {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** With a broker's port it keeps its sessions there. */
  static async start(version: SdkVersion, brokerPort?: number): Promise<ServerProcess> {
    const words = [version, ...(brokerPort === undefined ? [] : [brokerPort])].map(String);
    const child = fork(new URL('./sdk-server-process.js', import.meta.url), words);
    const [url] = await withDeadline('the server', once(child, 'message'));
    return new ServerProcess(child, url as string);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}
