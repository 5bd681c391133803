import type { Config } from '../config/schema.js';
import type { JetStreamReport } from '../storage/jetstream/jetstream-report.js';
import type { Command } from './command.js';
import { askBroker, type BrokerReport } from './doctor-broker.js';
import { type Finding, findingsOf } from './doctor-checks.js';
import {
  type Disk,
  diskOf,
  kernelSettings,
  type Limits,
  limitsOf,
  type Machine,
  machine,
} from './doctor-facts.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { loadSettings, settingsHelp } from './settings.js';
import { printLine, refuse } from './terminal.js';
import { packageVersion } from './version.js';
import { type ShownSetting, settingsWithoutSecrets, withoutSecrets } from './without-secrets.js';

/** All that is asked for when somebody needs help, and nothing that they would have to hide. */
interface Bundle {
  readonly version: string;
  readonly node: string;
  readonly platform: string;
  readonly at: string;
  readonly settings: readonly ShownSetting[];
  readonly limits: Limits;
  readonly machine: Machine;
  readonly kernel: Readonly<Record<string, string>>;
  readonly disk: Disk | null;
  readonly sharedLog: JetStreamReport | null;
  readonly broker: BrokerReport;
  readonly findings: readonly Finding[];
}

/** Metrics that a person is shown; the JSON has all. */
const SHOWN = [
  'gapless_connections',
  'gapless_connections_in_use',
  'gapless_subscribers',
  'gapless_streams',
  'gapless_committed_events',
  'gapless_head_events',
  'gapless_arena_used_bytes',
  'gapless_arena_capacity_bytes',
  'gapless_log_size_bytes',
  'gapless_log_disk_free_bytes',
  'process_resident_memory_bytes',
  'process_open_fds',
];

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'say how a broker and its machine do, without secrets',
  usage,
  async run(argv) {
    const { taken, rest } = takeFlags(argv);
    const settings = loadSettings(rest);
    if (settings.outcome === 'refused') return refuse(settings.problems, 'gapless doctor --help');
    const { config } = settings;
    const url = taken.get('--url') ?? process.env['GAPLESS_URL'] ?? ownUrl(config);
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
      return refuse([{ where: '--url', message: 'expected http://… or https://…' }], 'gapless doctor --help');
    const token = taken.get('--token') ?? process.env['GAPLESS_TOKEN'] ?? '';
    const facts = {
      limits: limitsOf(config),
      machine: machine(),
      kernel: kernelSettings(),
      disk: config.dataDir === null ? null : diskOf(config.dataDir),
      sharedLog: config.log.length === 0 ? null : await sharedLogOf(config),
      broker: await askBroker({ url, token }),
    };
    const bundle: Bundle = {
      version: packageVersion(),
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
      at: new Date().toISOString(),
      settings: settingsWithoutSecrets(settings),
      ...facts,
      findings: findingsOf({ config, ...facts }),
    };
    printLine(taken.has('--json') ? JSON.stringify(bundle, null, 2) : listing(bundle));
    return bundle.findings.some(({ level }) => level === 'bad') ? EXIT_FAILED : EXIT_OK;
  },
};

/** What the NATS servers say; their library is loaded only where there are such. */
async function sharedLogOf(config: Config): Promise<JetStreamReport> {
  const { reportOf } = await import('../storage/jetstream/jetstream-report.js');
  const access = {
    urls: config.log,
    credentialsFile: config.logCredentialsFile,
    tlsCaFile: config.logTlsCaFile,
    tlsCertFile: config.logTlsCertFile,
    tlsKeyFile: config.logTlsKeyFile,
  };
  try {
    return await reportOf(access, config.logStream);
  } catch (error) {
    return { servers: [], problem: withoutSecrets((error as Error).message), log: null };
  }
}

/** What is this command's own; the rest are settings. */
function takeFlags(argv: readonly string[]): { taken: Map<string, string>; rest: string[] } {
  const taken = new Map<string, string>();
  const rest: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const [flag = '', value] = splitFlag(argv[at] as string);
    if (flag === '--json') taken.set(flag, '');
    else if (flag === '--url' || flag === '--token') taken.set(flag, value ?? argv[++at] ?? '');
    else rest.push(argv[at] as string);
  }
  return { taken, rest };
}

function splitFlag(argument: string): [string, string | undefined] {
  const at = argument.indexOf('=');
  return at < 0 ? [argument, undefined] : [argument.slice(0, at), argument.slice(at + 1)];
}

/** Where the broker with these settings listens. */
function ownUrl({ host, port, tlsCertFile }: Config): string {
  const name =
    host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
  return `http${tlsCertFile === null ? '' : 's'}://${name}:${port}`;
}

function listing(bundle: Bundle): string {
  const {
    version,
    node,
    platform,
    at,
    settings,
    limits,
    machine: of,
    kernel,
    disk,
    sharedLog,
    broker,
    findings,
  } = bundle;
  const rows = (title: string, entries: Iterable<readonly [string, unknown]>): string[] => [
    '',
    title,
    ...[...entries].map(([name, value]) => `  ${name.padEnd(34)}${value ?? 'unknown'}`),
  ];
  const shown = SHOWN.flatMap((name) =>
    name in broker.metrics ? [[name, broker.metrics[name]] as const] : [],
  );
  const streams = broker.streams.map(
    ({ name, floor, logFloor, committed, head }) =>
      [String(name), `${logFloor ?? floor}..${committed}, head ${head}`] as const,
  );
  return [
    `gapless ${version}, Node ${node}, ${platform}, at ${at}`,
    ...rows(
      'settings that are not the default',
      settings.map(({ key, value, source }) => [key, `${value}  (${source})`]),
    ),
    ...rows('limits', Object.entries(limits)),
    ...rows('machine', Object.entries(of)),
    ...rows('kernel', Object.entries(kernel)),
    ...(disk === null ? [] : rows(`disk of ${disk.directory}`, diskRows(disk))),
    ...(sharedLog === null ? [] : rows('NATS servers of the log', sharedLogRows(sharedLog))),
    ...rows(
      `broker at ${broker.url}`,
      broker.problem === null
        ? [...Object.entries(broker.status), ...shown]
        : [['no answer', broker.problem]],
    ),
    ...(streams.length === 0 ? [] : rows('streams, by their positions', streams)),
    '',
    findings.length === 0 ? 'Nothing is wrong that can be seen from here.' : 'What was found',
    ...findings.map(({ level, what, advice }) => `  ${level.padEnd(6)}${what}; ${advice}`),
  ].join('\n');
}

function diskRows({ problem, freeBytes, totalBytes, type, files }: Disk): (readonly [string, unknown])[] {
  if (problem !== null) return [['problem', problem]];
  const space = [
    ['free', freeBytes],
    ['total', totalBytes],
    ['file system', type],
  ] as const;
  return [...space, ...files.map(({ name, bytes }) => [name, bytes] as const)];
}

function sharedLogRows({ servers, problem, log }: JetStreamReport): (readonly [string, unknown])[] {
  const rows: (readonly [string, unknown])[] = servers.map(({ address, problem, name, version }) => [
    address,
    problem ?? `${name}, ${version}`,
  ]);
  if (problem !== null) rows.push(['problem', problem]);
  if (log === null) return rows;
  const { followers, leader, bytesMax, lossySetting, ...plain } = log;
  if (leader !== null) rows.push(['leader', leader]);
  for (const { name, current, behind } of followers) {
    rows.push(['follower', `${name}, ${current ? 'current' : 'not current'}, ${behind} behind`]);
  }
  return [
    ...rows,
    ...Object.entries(plain),
    ['bytesMax', bytesMax ?? 'none'],
    ['lossySetting', lossySetting ?? 'none'],
  ];
}

function usage(): string {
  return [
    'Usage: gapless doctor [--json] [--url URL] [--token TOKEN] [SETTINGS]',
    '',
    'Collects what somebody has to know who is to help: version, settings, limits, disk, kernel, how the NATS servers of a',
    'shared log do, and what the running broker says of itself. Give it the settings that the broker has. No key, token or',
    'event is in it, and of a URL only where it leads; names of streams are. The exit code is 1 when something is wrong.',
    '  --json          all of it, as one JSON object',
    '  --url URL       the broker; else GAPLESS_URL, else where the settings have it listen',
    '  --token TOKEN   sent as a bearer token; better GAPLESS_TOKEN, for other users see the flags of a process',
    '',
    settingsHelp(),
  ].join('\n');
}
