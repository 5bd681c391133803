import { describe, it } from 'node:test';
import { NATS_SKIP, type NatsServer } from '../support/nats-server.js';
import { untilCaughtUp } from './caught-up.js';
import { ClusterUnderLoad } from './cluster-under-load.js';

/** What the servers run, and then instead of it; others by hand, for the step from one version to the next. */
const PROGRAMS = (process.env.NATS_PROGRAMS ?? 'nats-server,nats-server').split(',');
const ANSWERS = Number(process.env.NATS_ANSWERS ?? 30);

describe('three brokers whose NATS servers are replaced', { skip: NATS_SKIP }, () => {
  it('one after the other, under load: no reader misses or repeats an event, and no publish is lost or doubled (I1, I2, I3, I4, I6)', async (context) => {
    const [first, ...others] = PROGRAMS;
    const cluster = await ClusterUnderLoad.start(context, first);
    const { servers, brokers, crew, prng } = cluster;
    await crew.untilAnswers(ANSWERS);
    for (const program of others) {
      for (const server of servers) {
        await server.stop();
        server.program = program;
        await server.startAgain();
        await untilCaughtUp(prng.pick(servers.filter((other) => other !== server)) as NatsServer);
        await crew.untilAnswers(ANSWERS);
        crew.checker.assertClean();
      }
      // One that begins while servers of both kinds may have been in use takes up the same.
      const at = prng.below(brokers.length);
      await brokers[at]?.kill();
      brokers[at] = await brokers[at]!.startAgain();
      context.after(() => brokers[at]?.kill());
    }
    await crew.untilAnswers(ANSWERS);
    context.diagnostic(`${PROGRAMS.join(', ')}: ${await cluster.end()}`);
  });
});
