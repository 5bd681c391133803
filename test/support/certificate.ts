import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after } from 'node:test';
import { connect } from 'node:tls';

/** Makes a self-signed certificate for 127.0.0.1, with the `openssl` of the machine. */
export function makeCertificate(folder: string, name: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync(
    'openssl',
    ['req', '-x509', ...curve, '-keyout', key, '-out', cert, '-days', '2', ...subject],
    {
      stdio: 'pipe',
    },
  );
  return { cert, key };
}

/** A port in plain that speaks TLS to another: what knows plain sockets only can talk to a broker with TLS. */
export async function plainFront(port: number, ca: string): Promise<number> {
  const server = createServer((plain) => {
    const secure = connect({ host: '127.0.0.1', port, ca });
    plain.pipe(secure).pipe(plain);
    for (const [socket, other] of [
      [plain, secure],
      [secure, plain],
    ] as const) {
      socket.on('error', () => other.destroy());
      socket.on('close', () => other.destroy());
    }
  });
  after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
