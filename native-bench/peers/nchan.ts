import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, freePort, startProgram } from './peer.js';
import type { ServerPeer } from './server-peer.js';

const MODULES = process.env.BENCH_NCHAN ?? '/usr/lib/nginx/modules/ngx_nchan_module.so';

/**
 * Nchan in nginx, one worker as the broker has one edge; messages in its shared memory, as many kept as the broker's
 * default keeps of such events, no access log. One group, no authorization, as in its own documentation.
 */
export const nchan: ServerPeer = {
  name: 'nchan',
  missing() {
    if (nginx() === null) return 'nginx (Debian: nginx)';
    try {
      readFileSync(MODULES);
      return null;
    } catch {
      return `${MODULES} (Debian: libnginx-mod-nchan)`;
    }
  },
  async start(core) {
    const port = await freePort();
    const directory = await mkdtemp(join(tmpdir(), 'gapless-bench-nchan-'));
    const file = join(directory, 'nginx.conf');
    writeFileSync(file, configuration(directory, port));
    const running = await startProgram({
      command: [nginx() as string, '-p', directory, '-c', file],
      core,
      port,
      workers: 1,
    });
    return {
      ...running,
      async stop() {
        await running.stop();
        rmSync(directory, { recursive: true, force: true });
      },
    };
  },
  place: (topic) => ({
    publishPath: `/pub/${topic}_@`,
    subscribePath: `/sub/${topic}_@`,
    replayPath: `/all/${topic}_@`,
  }),
};

function nginx(): string | null {
  return findProgram('BENCH_NGINX', 'nginx');
}

function configuration(directory: string, port: number): string {
  return `load_module ${MODULES};
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
worker_rlimit_nofile 20000;
events { worker_connections 19000; }
http {
  access_log off;
  tcp_nodelay on;
  keepalive_requests 100000000;
  keepalive_timeout 3600s;
  nchan_shared_memory_size 256M;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server {
    listen 127.0.0.1:${port};
    location ~ /pub/(\\w+)$ {
      nchan_publisher;
      nchan_channel_id $1;
      nchan_message_buffer_length 30000;
      nchan_message_timeout 1h;
    }
    location ~ /sub/(\\w+)$ {
      nchan_subscriber eventsource;
      nchan_channel_id $1;
      nchan_subscriber_first_message newest;
    }
    location ~ /all/(\\w+)$ {
      nchan_subscriber eventsource;
      nchan_channel_id $1;
      nchan_subscriber_first_message oldest;
    }
  }
}
`;
}
