import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { PurgeJudge } from '#gapless/storage/jetstream/purge-judge.js';

describe('a purge, which old servers replay as one of everything,', () => {
  /** By name; null: it cannot be asked. */
  let versions: Record<string, string | null>;
  let nowMs: number;
  let looks: number;
  let isAway: boolean;
  let judge: PurgeJudge;

  beforeEach(() => {
    versions = { one: '2.10.27', two: '2.9.18', three: '2.15.1' };
    nowMs = 0;
    looks = 0;
    isAway = false;
    judge = new PurgeJudge({
      nowMs: () => nowMs,
      report: async () => {
        looks++;
        if (isAway) throw new Error('told to be away');
        const [leader = null, ...others] = Object.keys(versions);
        const problemOf = (version: string | null) => (version === null ? 'it is down' : null);
        const servers = Object.entries(versions).map(([name, version], index) => ({
          address: `127.0.0.1:${index}`,
          problem: problemOf(version),
          name: version === null ? null : name,
          version,
        }));
        const followers = others.map((name) => ({ name, current: true, behind: 0 }));
        const log = {
          replicas: 3,
          leader,
          followers,
          messages: 0,
          bytes: 0,
          bytesMax: null,
          lossySetting: null,
        };
        return { servers, log };
      },
    });
  });
  const later = (): Promise<boolean> => {
    nowMs += 60_000;
    return judge.mayPurge();
  };

  test('is made where all servers that have the log replay it as it was', async () => {
    assert.equal(await judge.mayPurge(), true);
  });

  test('is not made beside one that does not, whichever server a broker is connected to', async () => {
    versions.three = '2.9.10';
    assert.equal(await judge.mayPurge(), false);
    versions.three = '2.10.27';
    assert.equal(await later(), true);
  });

  test('is not made where nobody knows which version one has, unless it was known before', async () => {
    versions.two = null;
    assert.equal(await judge.mayPurge(), false);
    versions.two = '2.10.27';
    assert.equal(await later(), true);
    versions.two = null;
    assert.equal(await later(), true);
    versions.four = null;
    assert.equal(await later(), false);
  });

  test('is not made where no server can be asked, and they are asked again after a minute', async () => {
    isAway = true;
    assert.equal(await judge.mayPurge(), false);
    isAway = false;
    assert.equal(await judge.mayPurge(), false);
    assert.equal(looks, 1);
    assert.equal(await later(), true);
  });
});
