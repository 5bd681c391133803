import { writeFileSync } from 'node:fs';
import { Brokers } from './brokers.js';
import { chooseCores } from './cores.js';
import { describeEnvironment } from './environment.js';
import { compileLoadClient } from './load-client.js';
import { type Result, resultOf } from './result.js';
import { measureInRounds } from './rounds.js';
import { durableBatches, durablePublish } from './scenarios/durable-publish.js';
import { fanOutFromMany, fanOutFromOne } from './scenarios/fan-out.js';
import { idle } from './scenarios/idle.js';
import { liveInStorm } from './scenarios/live-in-storm.js';
import { publish } from './scenarios/publish.js';
import { replayFromLog } from './scenarios/replay.js';
import type { Bench, Sample, Scenario } from './scenarios/scenario.js';
import { storm } from './scenarios/storm.js';
import { type Command, parseCommand, USAGE, UsageError } from './settings.js';
import { formatTable } from './table.js';

const DURABLE_SCENARIOS: readonly Scenario[] = [durablePublish, durableBatches, replayFromLog, liveInStorm];

const SCENARIOS: readonly Scenario[] = [
  fanOutFromOne,
  fanOutFromMany,
  storm,
  publish,
  ...DURABLE_SCENARIOS,
  idle,
];

async function main(argv: readonly string[]): Promise<void> {
  const command = parseCommand(argv);
  if (command.help) {
    process.stdout.write(USAGE);
    return;
  }
  const loadClient = compileLoadClient();
  if (command.compileOnly) {
    process.stdout.write(`${loadClient}\n`);
    return;
  }
  const result = await measure(command, chosenScenarios(command.only));
  if (command.jsonFile !== null) writeFileSync(command.jsonFile, `${JSON.stringify(result, null, 2)}\n`);
  process.stdout.write(formatTable(result));
}

function chosenScenarios(only: readonly string[]): readonly Scenario[] {
  const unknown = only.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    const names = SCENARIOS.map((scenario) => scenario.name).join(', ');
    throw new UsageError(`--only: ${unknown.join(', ')}, expected some of ${names}`);
  }
  return only.length === 0 ? SCENARIOS : SCENARIOS.filter((scenario) => only.includes(scenario.name));
}

async function measure(command: Command, scenarios: readonly Scenario[]): Promise<Result> {
  const { settings } = command;
  const environment = describeEnvironment();
  const cores = chooseCores();
  const brokers = new Brokers({
    mainFile: command.brokerFile,
    core: cores?.server ?? null,
    dataParent: command.dataParent,
  });
  const bench: Bench = { settings, cores, brokers };
  try {
    await warmUp(bench, scenarios);
    const measured = await measureInRounds(bench, scenarios, showProgress);
    return resultOf(environment, settings, cores !== null, measured);
  } catch (cause) {
    const message = `no result: ${(cause as Error).message}\nthe brokers' last lines:\n${brokers.logTails()}`;
    throw new Error(message, { cause });
  } finally {
    await brokers.stop();
  }
}

/** The compiler inside Node is done with the hot paths before the first clock starts. */
async function warmUp(bench: Bench, scenarios: readonly Scenario[]): Promise<void> {
  if (bench.settings.warmUpMs === 0) return;
  const settings = { ...bench.settings, durationMs: bench.settings.warmUpMs };
  const isDurable = (scenario: Scenario) => DURABLE_SCENARIOS.includes(scenario);
  const warming = [
    ...(scenarios.every(isDurable) ? [] : [fanOutFromMany, storm]),
    ...scenarios.filter(isDurable),
  ];
  for (const scenario of warming) await scenario.measure({ ...bench, settings });
}

const NAME_WIDTH = 18;

function showProgress(scenario: Scenario, sample: Sample, round: number): void {
  const value = Math.round(sample.value).toLocaleString('en');
  process.stderr.write(`round ${round}  ${scenario.name.padEnd(NAME_WIDTH)}  ${value} ${scenario.unit}\n`);
}

function explain(error: unknown): number {
  const usage = error instanceof UsageError;
  process.stderr.write(usage ? `${error.message}\n\n${USAGE}` : `bench: ${(error as Error).message}\n`);
  return usage ? 2 : 1;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = explain(error);
}
