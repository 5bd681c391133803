import { writeFileSync } from 'node:fs';
import { Brokers, type BrokersOptions } from './brokers.js';
import { drawChart } from './chart.js';
import { chooseCores } from './cores.js';
import { describeEnvironment } from './environment.js';
import { compileLoadClient, prepareLoadClient } from './load-client.js';
import { formatMicro, runMicro } from './micro/run.js';
import { RunningPeers } from './peers/running-peers.js';
import { Progress } from './progress.js';
import { type Result, resultOf } from './result.js';
import { countMeasurements, measureInRounds } from './rounds.js';
import { SCENARIOS, WITHOUT_COMPILER } from './scenarios/all.js';
import { peerScenarios } from './scenarios/peers.js';
import type { Bench, Scenario } from './scenarios/scenario.js';
import { SHARED_LOG_SCENARIOS } from './scenarios/shared-log.js';
import { type Command, parseCommand, USAGE, UsageError } from './settings.js';
import { missingForSharedLogs, SharedLogs } from './shared-logs.js';
import { formatTable } from './table.js';
import { warmUp } from './warm-up.js';

async function main(argv: readonly string[]): Promise<void> {
  const command = parseCommand(argv);
  if (command.help) {
    process.stdout.write(USAGE);
    return;
  }
  if (command.compileOnly) {
    process.stdout.write(`${compileLoadClient()}\n`);
    return;
  }
  const isNative = prepareLoadClient();
  if (!isNative)
    process.stderr.write('no C compiler: fewer scenarios, and the load client is what they measure\n');
  const result = await measure(command, chooseScenarios(command, isNative));
  if (command.jsonFile !== null) writeFileSync(command.jsonFile, `${JSON.stringify(result, null, 2)}\n`);
  if (command.svgFile !== null) writeFileSync(command.svgFile, drawChart(result));
  if (result.micro.length > 0) process.stdout.write(`${formatMicro(result.micro)}\n`);
  if (result.scenarios.length > 0) process.stdout.write(formatTable(result));
}

function chooseScenarios(command: Command, isNative: boolean): readonly Scenario[] {
  const { only } = command;
  if (command.microOnly) return [];
  const all = scenariosOf(command, isNative);
  const unknown = only.filter((name) => !all.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    const names = all.map((scenario) => scenario.name).join(', ');
    throw new UsageError(`--only: ${unknown.join(', ')}, expected some of ${names}`);
  }
  return only.length === 0 ? all : all.filter((scenario) => only.includes(scenario.name));
}

function scenariosOf({ peers, log, all }: Command, isNative: boolean): readonly Scenario[] {
  if (!isNative && (peers || log || all)) {
    throw new UsageError('--peers, --log, --all: need the native load client');
  }
  if (log) return scenariosOfLogs();
  if (!isNative) return WITHOUT_COMPILER;
  return [...(peers && !all ? [] : SCENARIOS), ...(peers || all ? scenariosOfPeers() : [])];
}

function scenariosOfLogs(): readonly Scenario[] {
  const missing = missingForSharedLogs();
  if (missing !== null) throw new UsageError(`--log: needs ${missing}`);
  return SHARED_LOG_SCENARIOS;
}

function scenariosOfPeers(): readonly Scenario[] {
  const { scenarios, missing } = peerScenarios();
  for (const what of missing) process.stderr.write(`left out, for it is not here: ${what}\n`);
  return scenarios;
}

async function measure(command: Command, scenarios: readonly Scenario[]): Promise<Result> {
  const { settings } = command;
  const environment = describeEnvironment();
  const cores = chooseCores();
  const core = cores?.server ?? null;
  // Alone or with all the rest; whoever asks for some scenarios does not wait for it.
  const isPart = command.only.length > 0 || command.peers || command.log;
  const micro = isPart ? [] : runMicro(settings.microSeconds);
  const options: BrokersOptions = {
    mainFile: command.brokerFile,
    core,
    dataParent: command.dataParent,
    warmUp: (broker) => warmUp(broker, settings, cores?.load ?? null),
  };
  const brokers = new Brokers(options);
  const logs = new SharedLogs(options);
  const peers = new RunningPeers(core);
  const bench: Bench = { settings, cores, brokers, peers, logs };
  const progress = new Progress(countMeasurements(settings.runs, scenarios), process.stderr);
  try {
    const measured = await measureInRounds(bench, scenarios, (scenario, outcome, round) =>
      progress.measured(scenario, outcome, round),
    );
    return resultOf({ environment, settings, pinned: cores !== null, micro, measured });
  } catch (cause) {
    const message = `no result: ${(cause as Error).message}\nthe brokers' last lines:\n${brokers.logTails()}`;
    throw new Error(message, { cause });
  } finally {
    progress.end();
    await Promise.all([brokers.stop(), peers.stop(), logs.stop()]);
  }
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
