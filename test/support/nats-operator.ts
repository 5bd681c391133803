import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createUser>;

const UNLIMITED = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
};

/** An operator of NATS with one account: servers that trust it know users by tokens and keys, and no passwords. */
export class NatsOperator {
  readonly #operator = nkeys.createOperator();
  readonly #account = nkeys.createAccount();
  /** Of the servers themselves; JetStream wants one. */
  readonly #system = nkeys.createAccount();

  /** For the configuration of a server. */
  get config(): string {
    const operator = sign(this.#operator, this.#operator, { type: 'operator' });
    const account = sign(this.#operator, this.#account, { type: 'account', limits: UNLIMITED });
    const system = sign(this.#operator, this.#system, { type: 'account' });
    return [
      `operator: ${operator}`,
      `system_account: ${this.#system.getPublicKey()}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${this.#account.getPublicKey()}: ${account}`,
      `  ${this.#system.getPublicKey()}: ${system}`,
      '}',
    ].join('\n');
  }

  /** What the `.creds` of a user has in it. */
  creds(): string {
    const user = nkeys.createUser();
    const token = sign(this.#account, user, { type: 'user', subs: -1, data: -1, payload: -1 });
    return [
      ...['-----BEGIN NATS USER JWT-----', token, '------END NATS USER JWT------', ''],
      ...['-----BEGIN USER NKEY SEED-----', new TextDecoder().decode(user.getSeed())],
      ...['------END USER NKEY SEED------', ''],
    ].join('\n');
  }
}

function sign(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const [iss, sub] = [issuer.getPublicKey(), subject.getPublicKey()];
  const claims = { jti: sub, iat: 1, iss, name: sub, sub, nats: { ...nats, version: 2 } };
  const signed = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
